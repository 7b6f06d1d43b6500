"""Services as they are declared: what the start refuses, in one line, and what limits and descriptions come to."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Annotated, Any

import anyio
import msgspec
import pytest

from discreet import DeclarationError, OperationError, Service
from discreet.daemon.apps import AppError, load
from discreet.daemon.operations.registry import Registry
from discreet.errors.codes import RESERVED_CODES
from discreet.errors.redaction import register, unregister
from support.waits import until

Serving = Callable[..., AbstractAsyncContextManager[Any]]


class Full(OperationError, code="FULL"):
    """It is full."""


class AlsoFull(OperationError, code="FULL"):
    """It is full as well."""


class NoError(Exception):
    """Not one that can be declared."""


# -- one operation -------------------------------------------------------------------------------------------------


async def plain(n: int) -> int:
    return n


def plain_thread(n: int) -> int:
    return n


async def generator(n: int) -> AsyncIterator[int]:
    yield n


def plain_generator(n: int) -> Iterator[int]:
    yield n


async def unpromised(n: int) -> int:  # type: ignore[misc]
    yield n


def takes_object(value: threading_lock) -> None:  # type: ignore[name-defined]  # noqa: F821
    """Its annotation is no name."""


def takes_code(value: type[int]) -> None:
    """No JSON text is a class."""


def gives_code() -> type[int]:
    """Nor is a class a result."""
    return int


def unannotated(value) -> None:  # type: ignore[no-untyped-def]
    """No type at all."""


def variadic(*values: int) -> None:
    """Params come by name."""


async def events_of_code() -> AsyncIterator[type[int]]:
    yield int


WRONG: dict[str, tuple[str, Callable[..., Any], dict[str, Any]]] = {
    "a generator as a query": ("query", generator, {}),
    "a plain generator as a query": ("query", plain_generator, {}),
    "a generator as a mutation": ("mutation", generator, {}),
    "a coroutine as a subscription": ("subscription", plain, {}),
    "a function as a subscription": ("subscription", plain_thread, {}),
    "a plain generator as a subscription": ("subscription", plain_generator, {}),
    "a subscription that promises no events": ("subscription", unpromised, {}),
    "an inline coroutine": ("query", plain, {"inline": True}),
    "an inline subscription": ("subscription", generator, {"inline": True}),
    "an option of the daemon's own": ("query", plain_thread, {"inline": True, "immediate": True}),
    "an unknown annotation": ("query", takes_object, {}),
    "a param that JSON can't hold": ("query", takes_code, {}),
    "a result that JSON can't hold": ("query", gives_code, {}),
    "events that JSON can't hold": ("subscription", events_of_code, {}),
    "a param without a type": ("query", unannotated, {}),
    "any number of params": ("query", variadic, {}),
    "a name that is none": ("query", plain, {"name": "a b"}),
    "a name with a slash too many": ("query", plain, {"name": "a//b"}),
    "serial and keyed": ("query", plain, {"serial": True, "keyed": "n"}),
    "serial and several at a time": ("query", plain, {"serial": True, "concurrency": 2}),
    "no calls at a time": ("query", plain, {"concurrency": 0}),
    "keyed by no param": ("query", plain, {"keyed": "m"}),
    "an error that is none": ("query", plain, {"errors": [NoError]}),
    "an error without a code": ("query", plain, {"errors": [OperationError]}),
    "an error as an object": ("query", plain, {"errors": [Full()]}),
    "one code twice": ("query", plain, {"errors": [Full, AlsoFull]}),
    "a limit of nothing": ("query", plain, {"limit": 0}),
    "a limit below nothing": ("query", plain, {"limit": -1}),
    "a limit that is no number": ("query", plain, {"limit": "1"}),
    "a deadline below nothing": ("query", plain, {"timeout": -1}),
    "a deadline of no time": ("query", plain, {"timeout": 0}),
    "a deadline that is no number": ("query", plain, {"timeout": "1"}),
    "a deadline for an inline handler": ("query", plain_thread, {"timeout": 1.0, "inline": True}),
    "another visibility": ("query", plain, {"visibility": "public"}),
    "scopes in one string": ("query", plain, {"scopes": "read"}),
    "any_scope in one string": ("query", plain, {"any_scope": "read"}),
    "an option that is none": ("query", plain, {"scope": ["read"]}),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_declaration_is_one_line_that_names_the_operation(case: str) -> None:
    kind, handler, options = WRONG[case]
    service = Service("shop")
    with pytest.raises(DeclarationError) as caught:
        getattr(service, kind)(**options)(handler)
    message = str(caught.value)
    assert message.startswith("operation shop/")
    assert "\n" not in message
    assert service.operations == []


@pytest.mark.parametrize("code", sorted(RESERVED_CODES))
def test_a_protocol_code_can_not_be_declared(code: str) -> None:
    with pytest.raises(TypeError, match=code):
        type("Mine", (OperationError,), {"__doc__": "Mine."}, code=code)


@pytest.mark.parametrize("namespace", ["a b", "/a", "a/", "a//b", "é", "1a", "a\n"])
def test_a_namespace_that_is_no_name_is_refused(namespace: str) -> None:
    with pytest.raises(DeclarationError):
        Service(namespace)


@pytest.mark.parametrize("option", ["uses", "authority", "credentials"])
def test_names_in_one_string_are_refused(option: str) -> None:
    with pytest.raises(DeclarationError):
        Service("shop", **{option: "shop/call"})  # type: ignore[arg-type]


def test_a_declared_function_stays_itself() -> None:
    service = Service("shop")
    assert service.query()(plain) is plain
    assert service.subscription()(generator) is generator
    assert [spec.name for spec in service.operations] == ["shop/plain", "shop/generator"]


# -- many ----------------------------------------------------------------------------------------------------------


def test_everything_wrong_between_services_is_told_at_once() -> None:
    services = []
    for uses in (["none/a", "shop/plain"], ["/none/b"]):
        service = Service("shop", uses=uses)
        service.query()(plain)
        service.query(name="other")(plain_thread)
        services.append(service)
    with pytest.raises(DeclarationError) as caught:
        Registry(services)
    message = str(caught.value)
    for name in ("shop/plain", "shop/other", "none/a", "none/b"):
        assert message.count(name) == 1
    assert "\n" not in message


def test_operations_that_use_each_other_are_fine() -> None:
    first, second = Service("first", uses=["second/plain"]), Service("second", uses=["first/plain", "second/plain"])
    first.query()(plain)
    second.query()(plain)
    assert len(Registry([first, second])) == 2


def test_every_app_that_can_not_be_hosted_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "apps_broken.py").write_text("raise ValueError('first line\\nsecond line')\n")
    (tmp_path / "apps_other.py").write_text("thing = 3\n")
    paths = ["apps_broken:x", "apps_other:thing", "apps_other:none", "apps_missing:x", "nocolon", ":x", "x:"]
    with pytest.raises(AppError) as caught:
        load(paths)
    message = str(caught.value)
    assert "\n" not in message
    assert all(repr(path) in message for path in paths)
    assert isinstance(caught.value.__cause__, ValueError)


# -- limits --------------------------------------------------------------------------------------------------------


class Busy:
    """Operations with limits, which wait until they are let go."""

    def __init__(self) -> None:
        self.go = anyio.Event()
        self.started = 0
        self.service = service = Service("busy")

        @service.query(limit=2, timeout=None)
        async def two() -> str:
            self.started += 1
            await self.go.wait()
            return "done"

        @service.query(limit=1, serial=True, timeout=None)
        async def one() -> str:
            self.started += 1
            await self.go.wait()
            return "done"

        @service.subscription(limit=1)
        async def watch() -> AsyncIterator[int]:
            self.started += 1
            await self.go.wait()
            yield 1

        @service.query(limit=1)
        async def fail() -> None:
            raise ValueError

        @service.query(limit=1)
        async def wrong(n: int) -> None:
            """Never runs in these tests."""


OVERLOADED = {"code": -32000, "message": "Server overloaded", "data": {"code": "OVERLOADED", "retryable": True}}


@pytest.mark.anyio
@pytest.mark.parametrize(("method", "limit"), [("busy/two", 2), ("busy/one", 1), ("busy/watch", 1)])
async def test_one_more_than_the_limit_is_refused_and_the_others_stand(
    serving: Serving, method: str, limit: int
) -> None:
    busy = Busy()
    async with serving(busy.service) as wire:
        await wire.send(*(wire.request(method) for _ in range(limit + 2)))
        refused = await wire.receive_all(2)
        assert [reply["error"] for reply in refused] == [OVERLOADED] * 2
        assert [reply["id"] for reply in refused] == [limit + 1, limit + 2]
        busy.go.set()
        answers = [message for message in await wire.receive_all(limit + (method == "busy/watch")) if "id" in message]
        assert all("result" in answer for answer in answers)
        reply = await wire.call(method)
        assert "error" not in reply


@pytest.mark.anyio
@pytest.mark.parametrize("method", ["busy/two", "busy/watch"])
async def test_cancelled_calls_give_their_place_back(serving: Serving, method: str) -> None:
    busy = Busy()
    async with serving(busy.service) as wire:
        for round_ in range(5):
            await wire.send(wire.request(method, id="x"))
            await until(lambda round_=round_: busy.started == round_ + 1)  # type: ignore[misc]
            await wire.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "x"}})
            assert (await wire.receive())["error"]["code"] == -32800
            await until(lambda: wire.daemon.host.idle)


@pytest.mark.anyio
async def test_failures_of_every_kind_give_their_place_back(serving: Serving) -> None:
    async with serving(Busy().service) as wire:
        for _ in range(3):
            assert (await wire.call("busy/fail"))["error"]["code"] == -32603
            assert (await wire.call("busy/wrong", {"n": "x"}))["error"]["code"] == -32602
        await wire.send(*[{"jsonrpc": "2.0", "method": "busy/fail"}] * 3)
        await wire.nothing_more()
        assert (await wire.call("busy/fail"))["error"]["code"] == -32603


@pytest.mark.anyio
async def test_a_duplicate_id_takes_no_place(serving: Serving) -> None:
    busy = Busy()
    async with serving(busy.service) as wire:
        await wire.send(wire.request("busy/two", id="x"), wire.request("busy/two", id="x"))
        assert (await wire.receive())["error"]["data"] == {"reason": "duplicate-id"}
        await wire.send(wire.request("busy/two", id="y"))
        busy.go.set()
        assert {reply["id"] for reply in await wire.receive_all(2)} == {"x", "y"}


# -- user code at the edge -----------------------------------------------------------------------------------------


@dataclasses.dataclass
class Touchy:
    """Its own check raises what no decoder expects."""

    n: int

    def __post_init__(self) -> None:
        raise LookupError(self.n)


@pytest.mark.anyio
@pytest.mark.parametrize("options", [{}, {"inline": True}, {"keyed": "value"}, {"serial": True}])
async def test_params_whose_own_check_fails_harm_only_their_request(serving: Serving, options: dict[str, Any]) -> None:
    service = Service("touchy")

    @service.query(**options)
    def take(value: Touchy) -> None:
        """Never reached."""

    async with serving(service) as wire:
        for _ in range(2):
            assert (await wire.call("touchy/take", {"value": {"n": 1}}))["error"]["code"] in (-32602, -32603)
        await wire.nothing_more()


# -- descriptions --------------------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_descriptions_come_from_the_docstring_or_the_option_and_params_have_their_own(serving: Serving) -> None:
    service = Service("doc")

    @service.query(inline=True)
    def documented(size: Annotated[int, msgspec.Meta(description="How large, in bytes.", ge=1)] = 1) -> int:
        """Say how large
        it is.

        Not this.
        """
        return size

    @service.query(inline=True, description="Replaced.")
    def replaced() -> None:
        """Not this."""

    @service.query(inline=True)
    def silent() -> None:
        pass

    async with serving(service) as wire:
        listed = {e["name"]: e["description"] for e in (await wire.call("services/list"))["result"]}
        assert listed == {"doc/documented": "Say how large it is.", "doc/replaced": "Replaced.", "doc/silent": ""}
        schema = (await wire.call("services/schema", {"name": "doc/documented"}))["result"]
        assert schema["description"] == "Say how large it is."
        assert schema["inputSchema"]["properties"]["size"]["description"] == "How large, in bytes."
        methods = {m["name"]: m["description"] for m in (await wire.call("listMethods"))["result"]}
        assert methods["doc/replaced"] == "Replaced."


@pytest.mark.anyio
async def test_a_schema_holds_the_declared_errors(serving: Serving) -> None:
    service = Service("doc")
    service.query(errors=[Full])(plain)
    async with serving(service) as wire:
        schema = (await wire.call("services/schema", {"name": "/doc/plain"}))["result"]
        assert [error["code"] for error in schema["errorSchemas"]] == ["FULL"]
        assert (schema["kind"], schema["namespace"], schema["visibility"]) == ("query", "doc", "external")


# -- secrets in descriptions ---------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_a_registered_secret_in_a_description_is_not_listed(serving: Serving) -> None:
    secret = "correct-horse-battery"
    shop = Service("shop")
    shop.query(description=f"Asks with {secret}")(plain)
    register(secret)
    try:
        async with serving(shop) as peer:
            for method in ("services/list", "services/schema", "listMethods", "rpc.discover"):
                params = {"name": "shop/plain"} if method == "services/schema" else {}
                answer = repr(await peer.call(method, params))
                assert "shop/plain" in answer and "horse" not in answer
    finally:
        unregister(secret)
