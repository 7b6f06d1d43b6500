"""What signatures mean as input: by name, by position, further members, defaults, the whole; and which can be none."""

import functools
from collections.abc import Callable
from datetime import date
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from discreet import Context, Service
from discreet.daemon.operations.params import InputModel, build_input
from discreet.errors.exceptions import FailureError
from discreet.errors.failures import InvalidParams

if TYPE_CHECKING:
    from discreet.daemon.operations.context import Context as OnlyForCheckers


CTX = object()


class Filter(msgspec.Struct):
    suffix: str = ""


def read(ctx: Context, path: str, limit: int = 65536) -> object:
    return (ctx, path, limit)


def search(ctx: Context, text: str, *, depth: int = 3, kinds: list[str] = ["file"]) -> object:  # noqa: B006
    return (ctx, text, depth, kinds)


def no_params(ctx: Context) -> object:
    return ctx


def anything(ctx: Context, **params: Any) -> object:
    return (ctx, params)


def counted(**params: int) -> object:
    return params


def mixed(ctx: Context, name: str, size: int = 1, *, flag: bool = False, **labels: str) -> object:
    return (ctx, name, size, flag, labels)


def called(func: Callable[..., Any], raw: str | bytes | Raw | None) -> Any:
    """What the handler returns for this input."""
    model = build_input(func)
    return model.invoker(func)(CTX, model.decode(raw.encode() if isinstance(raw, str) else raw))


def refusal(func: Callable[..., Any], raw: str, prefix: str = "") -> InvalidParams:
    with pytest.raises(FailureError) as caught:
        build_input(func).decode(raw.encode(), prefix)
    assert isinstance(caught.value.failure, InvalidParams)
    return caught.value.failure


def watch(workDoneToken: str, _meta: dict[str, int] = {}) -> object:  # noqa: B006
    return workDoneToken, _meta


def late(first: int = 1, *, second: str) -> object:
    return first, second


def proxy(**params: object) -> object:
    return params


def free_name(ctx: Context, /, **params: Any) -> object:
    return ctx, params


def bag(items: set[Any]) -> None: ...


def rich(
    when: date, size: Annotated[int, msgspec.Meta(ge=1)], kind: Literal["a", "b"] | None = None, by: Filter = Filter()  # noqa: B008
) -> object:  # fmt: skip
    return when, size, kind, by


class Counter:
    def add(self, ctx: Context, by: int = 1, **params: Any) -> object:
        return (type(self), ctx, by, params)

    def __call__(self, ctx: Context, by: "int" = 1) -> object:
        return (type(self), ctx, by)


@functools.wraps(read)
def wrapped(*args: Any, **kwargs: Any) -> object:
    return read(*args, **kwargs)


def by_name(ctx, path: str) -> object:  # type: ignore[no-untyped-def]
    return ctx, path


def by_type(request: Context, path: str) -> object:
    return request, path


def by_text(request: "Context", path: str) -> object:
    return request, path


def for_checkers(request: "OnlyForCheckers", path: str) -> object:
    return request, path


for_checkers.__annotations__["request"] = "somewhere.Context"

ASIDE = '"_meta":{"progressToken":1,"x":1e400},"workDoneToken":"t","partialResultToken":2'

TAKEN: dict[str, tuple[Callable[..., Any], str | Raw, object]] = {
    "by name": (read, '{"limit":10,"path":"a"}', (CTX, "a", 10)),
    "by position": (read, '["a",10]', (CTX, "a", 10)),
    "by position, keyword-only ones too": (search, '["a",1,["dir"]]', (CTX, "a", 1, ["dir"])),
    "keyword-only": (search, '{"text":"a","depth":1}', (CTX, "a", 1, ["file"])),
    "a default": (read, '{"path":"a"}', (CTX, "a", 65536)),
    "a default by position": (read, '["a"]', (CTX, "a", 65536)),
    "raw of the envelope": (read, Raw(b'{"path":"a"}'), (CTX, "a", 65536)),
    "a raw array of the envelope": (read, Raw(b'["a"]'), (CTX, "a", 65536)),
    "the last of a repeated one": (read, '{"path":"a","path":"b"}', (CTX, "b", 65536)),
    "the last of a repeated one, the first of another type": (read, '{"path":1,"path":"b"}', (CTX, "b", 65536)),
    "without the tokens for progress": (read, f'{{{ASIDE},"path":"a"}}', (CTX, "a", 65536)),
    "repeated, without the tokens": (read, f'{{"path":"b",{ASIDE},"path":"a"}}', (CTX, "a", 65536)),
    "further ones, without the tokens": (mixed, f'{{{ASIDE},"name":"a"}}', (CTX, "a", 1, False, {})),
    "further ones of one type, without the tokens": (counted, f'{{{ASIDE},"a":1}}', {"a": 1}),
    "further ones of one type, without one token": (counted, '{"partialResultToken":2,"a":1}', {"a": 1}),
    "a token where anything goes": (anything, '{"workDoneToken":"t"}', (CTX, {"workDoneToken": "t"})),
    "no params, without the tokens": (no_params, f"{{{ASIDE}}}", CTX),
    "a token that is declared": (watch, '{"workDoneToken":"t","_meta":{"a":1},"partialResultToken":2}', ("t", {"a": 1})),
    "a default before what is required": (late, '{"second":"b"}', (1, "b")),
    "a default before what is required, by position": (late, '[5,"b"]', (5, "b")),
    "further ones of one type": (counted, '{"a":1,"b":2}', {"a": 1, "b": 2}),
    "named and further ones": (mixed, '{"x":"1","name":"n","flag":true,"y":"2"}', (CTX, "n", 1, True, {"x": "1", "y": "2"})),
    "named ones by position": (mixed, '["n",2,true]', (CTX, "n", 2, True, {})),
    "of a method": (Counter().add, '{"by":2,"x":3}', (Counter, CTX, 2, {"x": 3})),
    "of a callable object": (Counter(), '{"by":2}', (Counter, CTX, 2)),
    "of a wrapped handler": (wrapped, '{"path":"a"}', (CTX, "a", 65536)),
    "of a partial call": (functools.partial(read, limit=5), '{"path":"a"}', (CTX, "a", 5)),
    "of a partial call of a method": (functools.partial(Counter().add, by=5), '{"x":1}', (Counter, CTX, 5, {"x": 1})),
    "objects": (proxy, '{"workDoneToken":[1]}', {"workDoneToken": [1]}),
    "the name of a context that is positional-only": (free_name, '{"ctx":1}', (CTX, {"ctx": 1})),
    "a context by its name": (by_name, '{"path":"a"}', (CTX, "a")),
    "a context by its type": (by_type, '{"path":"a"}', (CTX, "a")),
    "a context by the text of its type": (by_text, '{"path":"a"}', (CTX, "a")),
    "a context that is imported for checkers": (for_checkers, '{"path":"a"}', (CTX, "a")),
    "rich types": (rich, '{"when":"2020-01-02","size":1,"by":{"suffix":"x"}}', (date(2020, 1, 2), 1, None, Filter("x"))),
}  # fmt: skip


@pytest.mark.parametrize("case", TAKEN)
def test_params_are_taken(case: str) -> None:
    func, raw, result = TAKEN[case]
    assert called(func, raw) == result


REFUSED: dict[str, tuple[Callable[..., Any], str, InvalidParams]] = {
    "by name": (read, '{"path":"a","limit":"zq"}', InvalidParams("limit", "integer", "string")),
    "by position": (read, '["a","zq"]', InvalidParams("limit", "integer", "string")),
    "too many by position": (read, '["a",1,2]', InvalidParams("$", "at most 2 params", "array")),
    "too many by position beside further ones": (mixed, '["n",2,true,4]', InvalidParams("$", "at most 3 params", "array")),
    "any by position where there are none": (no_params, "[1]", InvalidParams("$", "object", "array")),
    "any by position where anything goes": (anything, "[1]", InvalidParams("$", "object", "array")),
    "unknown": (read, '{"path":"a","lmit":1}', InvalidParams("lmit", "one of", "unknown field", ("path", "limit"))),
    "unknown beside tokens, which are not offered": (
        read, f'{{{ASIDE},"path":"a","lmit":1}}', InvalidParams("lmit", "one of", "unknown field", ("path", "limit")),
    ),
    "unknown where there are none": (no_params, '{"path":"a"}', InvalidParams("path", "no members", "unknown field")),
    "the last of a repeated one": (read, '{"path":"b","path":1}', InvalidParams("path", "string", "number")),
    "a token that is declared": (watch, '{"workDoneToken":1}', InvalidParams("workDoneToken", "string", "number")),
    "no token that is declared": (watch, "{}", InvalidParams("workDoneToken", "string", "missing")),
    "missing behind a default": (late, "[5]", InvalidParams("second", "string", "missing")),
    "a further one of another type": (counted, '{"a":1,"b":"zq"}', InvalidParams("*", "integer", "string")),
    "a named one is missing": (mixed, '{"x":"1"}', InvalidParams("name", "string", "missing")),
    "a further one beside a named one": (mixed, '{"name":"n","x":1}', InvalidParams("*", "string", "number")),
    "a number out of range": (proxy, '{"a":[1e400]}', InvalidParams("*[0]", "number in range", "number")),
    "the name of the context": (Counter().add, '{"ctx":1}', InvalidParams("ctx", "no members", "unknown field")),
    "the name of the object": (Counter().add, '{"self":1}', InvalidParams("self", "no members", "unknown field")),
    "no item of a set": (bag, '{"items":[[1]]}', InvalidParams("items", "array", "array")),
    "beyond a limit": (rich, '{"when":"2020-01-02","size":0}', InvalidParams("size", "integer >= 1", "number")),
    "no date": (rich, '["zq"]', InvalidParams("when", "date", "string")),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_params_that_do_not_fit_are_named_by_the_signature(case: str) -> None:
    func, raw, fault = REFUSED[case]
    assert refusal(func, raw) == fault


@pytest.mark.parametrize("raw", [None, "null", " null ", "{}", "[]", " [ ] "])
@pytest.mark.parametrize(
    ("func", "result"), [(no_params, CTX), (anything, (CTX, {})), (counted, {}), (lambda: "done", "done")]
)
def test_no_params_can_be_said_in_many_ways(func: Callable[..., Any], result: object, raw: str | None) -> None:
    assert called(func, raw) == result


@pytest.mark.parametrize("raw", [None, "null", "{}", "[]"])
def test_absent_params_lack_what_is_required(raw: str | None) -> None:
    with pytest.raises(FailureError) as caught:
        build_input(read).decode(None if raw is None else raw.encode())
    assert caught.value.failure == InvalidParams("path", "string", "missing")


@pytest.mark.parametrize("raw", ['"zq"', "1", "true"])
@pytest.mark.parametrize("func", [read, no_params, anything, counted, mixed])
def test_params_of_any_other_type_are_refused(func: Callable[..., Any], raw: str) -> None:
    found = refusal(func, raw)
    assert (found.param, found.expected) == ("$", "object")


def test_the_prefix_stands_before_the_path_of_a_fault() -> None:
    assert refusal(read, '{"path":1}', "input").param == "input.path"
    assert refusal(read, "[1]", "input").param == "input.path"
    assert refusal(read, "[1,2,3]", "input").param == "input"
    assert refusal(counted, '{"zq":""}', "input").param == "input.*"
    assert refusal(mixed, '{"name":1}', "input").param == "input.name"


def test_a_default_that_one_call_changes_is_whole_again_for_the_next() -> None:
    def grow(items: list[int] = [1], seen: set[int] = set(), by: Filter = Filter("x")) -> object:  # noqa: B006, B008
        items.append(2)
        seen.add(1)
        by.suffix += "y"
        return items, seen, by.suffix

    model = build_input(grow)
    invoke = model.invoker(grow)
    for _ in range(2):
        assert invoke(CTX, model.decode(b"{}")) == ([1, 2], {1}, "xy")


def test_a_default_that_is_no_collection_is_the_very_object() -> None:
    sentinel: Any = object()

    def given(value: Any = sentinel, unset: int | msgspec.UnsetType = msgspec.UNSET) -> object:
        return value is sentinel and unset is msgspec.UNSET

    assert called(given, "{}") is True


def test_the_model_tells_its_names_type_and_values() -> None:
    model = build_input(read)
    assert (model.names, model.extra, model.takes_context, model.keyword_only) == (("path", "limit"), None, True, ())
    assert model.value(model.decode(b'{"path":"a"}'), "limit") == 65536
    with pytest.raises(ValueError, match="not in"):
        model.value(model.decode(b'{"path":"a"}'), "zq")
    assert build_input(anything).type == dict[str, Any]
    assert build_input(mixed).extra is str
    assert build_input(search).keyword_only == ("depth", "kinds")


DEEP = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize(
    "raw", [DEEP, f'{{"path":{DEEP}}}', f'{{"x":{DEEP}}}', "9" * 10_000, f'{{"path":{"9" * 10_000}}}']
)
@pytest.mark.parametrize("func", [read, no_params, anything, counted, mixed])
def test_depth_and_length_beyond_all_limits_are_refused(func: Callable[..., Any], raw: str) -> None:
    if func is mixed and "{" in raw:
        raw = raw.replace('"path"', '"name"')
    assert refusal(func, raw).expected


def test_a_fault_carries_nothing_that_msgspec_said() -> None:
    with pytest.raises(FailureError) as caught:
        build_input(read).decode(b'{"path":"a","limit":"zq"}')
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_an_error_of_a_type_s_own_making_is_no_fault_of_the_caller() -> None:
    class Broken(msgspec.Struct):
        def __post_init__(self) -> None:
            raise KeyError

    def use(broken: Broken) -> None: ...

    use.__annotations__["broken"] = Broken
    with pytest.raises(KeyError):
        build_input(use).decode(b'{"broken":{}}')


MODELS: list[InputModel] = [build_input(func) for func in (read, search, no_params, anything, counted, mixed)]


@given(st.binary(max_size=30) | st.text(alphabet='{}[]",:0ae"', max_size=30).map(str.encode))
def test_any_bytes_give_values_or_invalid_params(raw: bytes) -> None:
    for model in MODELS:
        try:
            values = model.decode(raw)
        except FailureError as error:
            assert isinstance(error.failure, InvalidParams)
        else:
            assert len(values) == len(model.names) + (model.extra is not None)


def no_annotation_of_rest(**params) -> None: ...  # type: ignore[no-untyped-def]


def positional_only(path: str, /) -> None: ...


def whole_and_more(params: Filter, /, more: int) -> None: ...


def any_number(*paths: str) -> None: ...


def two_underscores(__path: str) -> None: ...


def nowhere(path: "Nowhere") -> None: ...  # type: ignore[name-defined]  # noqa: F821


def no_type(path: "1 +") -> None: ...  # type: ignore[valid-type]


def ambiguous(path: list[int] | set[int]) -> None: ...


def context_by_name(*, ctx: Context, path: str) -> None: ...


@pytest.mark.parametrize(
    ("func", "named"),
    [
        (no_annotation_of_rest, "'params' has no annotation"),
        (positional_only, "'path' takes the whole params, which are an object or an array"),
        (whole_and_more, "'params' is positional-only and so takes the whole params"),
        (any_number, "'paths' takes any number"),
        (two_underscores, "'__path' can't begin"),
        (nowhere, "'path' has an annotation that can't be decoded"),
        (no_type, "'path' has an annotation that can't be decoded"),
        (ambiguous, "'path' has an annotation that can't be decoded"),
        (context_by_name, "the context must be the first positional"),
    ],
)
def test_a_signature_that_can_be_no_input_is_refused_at_the_start(func: Callable[..., Any], named: str) -> None:
    with pytest.raises(ValueError, match=named) as caught:
        build_input(func)
    assert str(caught.value).startswith(func.__qualname__ + ": ")
    assert "\n" not in str(caught.value)


class Hover(msgspec.Struct, rename="camel"):
    text_document: dict[str, str]
    position: int = 0


@pytest.mark.anyio
async def test_the_whole_params_arrive_and_unknown_members_are_ignored(serving: Any) -> None:
    service = Service("editor")

    @service.query("textDocument/hover")
    async def hover(ctx: Context, params: Hover, /) -> str:
        return f"{params.text_document['uri']}:{params.position}"

    @service.query
    def maybe(params: dict[str, int] | None, /) -> bool:
        return params is None

    async with serving(service) as wire:
        sent = {"textDocument": {"uri": "a"}, "position": 3, "workDoneToken": 1, "_meta": {}, "new": True}
        assert (await wire.call("textDocument/hover", sent))["result"] == "a:3"
        data = (await wire.call("textDocument/hover", {"textDocument": {"uri": 1}}))["error"]["data"]
        assert data == {"param": "textDocument.*", "expected": "string", "received": "number"}
        assert (await wire.call("textDocument/hover"))["error"]["data"]["received"] == "missing"
        assert (await wire.call("textDocument/hover", [1]))["error"]["data"]["received"] == "array"
        assert (await wire.call("editor/maybe"))["result"] is True
        assert (await wire.call("editor/maybe", {"a": 1}))["result"] is False
        described = {entry["name"]: entry["params"] for entry in (await wire.call("describeMethods"))["result"]}
        assert described["textDocument/hover"] == ["textDocument: object", "position?: integer"]


@pytest.mark.anyio
async def test_calls_are_keyed_by_a_member_of_the_whole_params(serving: Any) -> None:
    service = Service("editor")

    @service.query(keyed="position")
    async def hover(params: Hover, /) -> int:
        return params.position

    async with serving(service) as wire:
        assert (await wire.call("editor/hover", {"textDocument": {}, "position": 4}))["result"] == 4
