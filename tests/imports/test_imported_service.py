"""A service of imported operations: what goes to the other program, what comes back, and what never does."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import msgspec
import pytest
from msgspec import Raw

from discreet import CallFailed, Context, OperationError, Service
from discreet.client.errors import InternalError, InvalidParams, MethodNotFound, OperationFailed, Unavailable
from discreet.dialects.mcp.tools import PAGE_BYTES
from discreet.errors import failures
from discreet.errors.decoders import SURE_LEVELS
from discreet.errors.exceptions import FailureError
from discreet.errors.failures import DomainFailure
from discreet.imports.archive import ImportArchive, pack
from discreet.imports.model import Imported, ImportedError, ImportedOperation, ImportFailed, Schema, UpstreamError
from discreet.imports.service import ImportOptions, imported_service
from discreet.testing import in_memory

pytestmark = pytest.mark.anyio

NODE: Schema = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "next": {"$ref": "#/$defs/Node"}},
    "required": ["name"],
}
ERRORS = (
    ImportedError("HTTP_404", 404, "It is not there", {"$ref": "#/$defs/Problem"}),
    ImportedError("HTTP_429", 429, "Too many", None, retryable=True),
)
GET = ImportedOperation(
    name="nodes/get",
    kind="query",
    description="Get a node.",
    input={
        "type": "object",
        "properties": {
            "id": {"type": "integer", "minimum": 1},
            "node": {"$ref": "#/$defs/Node"},
            "color": {"enum": ["red", "blue"]},
            "tags": {"type": "object", "additionalProperties": {"type": "string", "maxLength": 3}},
        },
        "required": ["id"],
        "additionalProperties": False,
    },
    output={"$ref": "#/$defs/Node"},
    errors=ERRORS,
)
PUT = ImportedOperation(
    name="nodes/put", kind="mutation", input={"type": "object"}, output={"type": "null"}, idempotent=True
)
WATCH = ImportedOperation(
    name="watch", kind="subscription", input={"type": "object"}, output={"type": "integer"}, errors=ERRORS[1:]
)
IMPORTED = Imported(
    title="Nodes",
    version="3",
    description="Nodes of a list.",
    operations=(GET, PUT, WATCH),
    definitions={
        "Node": NODE,
        "Problem": {"type": "object", "properties": {"why": {"type": "string"}}, "required": ["why"]},
        "Unused": {"type": "integer"},
    },
)


class Scripted:
    """An upstream without a program behind it. Answers with what it was given: JSON text, or an exception to raise."""

    def __init__(self, *answers: bytes | Exception) -> None:
        self.answers = list(answers)
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.open = False
        self.opens = self.refusals = 0
        self.streams_closed = 0

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[None]:
        self.opens += 1
        if self.opens <= self.refusals:
            raise OSError("it is not there")
        self.open = True
        yield
        self.open = False

    async def call(self, operation: ImportedOperation, arguments: dict[str, Any], ctx: Context) -> Raw:
        self.calls.append((operation.name, arguments))
        await anyio.lowlevel.checkpoint()
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return Raw(answer)

    async def stream(
        self, operation: ImportedOperation, arguments: dict[str, Any], ctx: Context
    ) -> AsyncGenerator[Raw, None]:
        try:
            while self.answers:
                yield await self.call(operation, arguments, ctx)
        finally:
            self.streams_closed += 1


def nodes(upstream: Scripted, **options: Any) -> Service:
    """The service of these operations, all of them exposed."""
    packed = ImportArchive(pack(IMPORTED), Imported, ImportedOperation)
    return imported_service("list", packed, upstream, ImportOptions(**{"expose": True, **options}))


WRONG_PARAMS: list[tuple[Any, tuple[str, str, str, Any]]] = [
    ({}, ("id", "integer >= 1", "missing", None)),
    ({"id": 0}, ("id", "integer >= 1", "number", None)),
    ({"id": "secret"}, ("id", "integer >= 1", "string", None)),
    ({"id": 1, "colour": "red"}, ("colour", "one of", "unknown field", ("id", "node", "color", "tags"))),
    ({"id": 1, "color": "green"}, ("color", "one of", "green", ("red", "blue"))),
    ({"id": 1, "node": {"next": {}}}, ("node.name", "string", "missing", None)),
    ({"id": 1, "node": {"name": "a", "next": {"name": 2}}}, ("node.next.name", "string", "number", None)),
    ({"id": 1, "tags": {"my own key": "long"}}, ("tags.*", "string of at most 3 characters", "string", None)),
    ([1, 2, 3, 4, 5], ("$", "at most 4 params", "array", None)),
]


@pytest.mark.parametrize(("params", "fault"), WRONG_PARAMS, ids=[str(row[1][:2]) for row in WRONG_PARAMS])
async def test_wrong_params_are_named_in_declared_words_and_go_nowhere(params: Any, fault: tuple[Any, ...]) -> None:
    upstream = Scripted()
    async with in_memory(nodes(upstream)) as peer:
        with pytest.raises(InvalidParams) as caught:
            await peer.call("list/nodes/get", params)
    failure = caught.value.failure
    assert (failure.param, failure.expected, failure.received, failure.accepted) == fault
    assert upstream.calls == []


NOT_TO_BE_READ = {
    b'{"id":1e400}': ("*", "number in range", "number"),
    b'{"id":' + b"[" * 5000 + b"]" * 5000 + b"}": ("$", f"object of at most {SURE_LEVELS} levels", "object"),
}


@pytest.mark.parametrize("text", NOT_TO_BE_READ, ids=["number", "nesting"])
def test_params_that_can_not_be_read_are_wrong_params(text: bytes) -> None:
    (spec, *_) = nodes(Scripted()).operations
    with pytest.raises(FailureError) as caught:
        spec.input.decode(text)
    failure = caught.value.failure
    assert isinstance(failure, failures.InvalidParams)
    assert (failure.param, failure.expected, failure.received) == NOT_TO_BE_READ[text]


async def test_params_go_on_as_they_are_and_the_result_comes_back_as_it_is() -> None:
    upstream = Scripted(b'{"name":"x","more":[1.50, 1e2]}', b"null")
    async with in_memory(nodes(upstream)) as peer:
        result = await peer.call("list/nodes/get", {"id": 7, "tags": {"k": "v"}, "_meta": {"a": 1}})
        assert upstream.open
        assert await peer.call("list/nodes/put", {"any": [None]}) is None
    assert result == {"name": "x", "more": [1.5, 100.0]}
    assert upstream.calls == [("nodes/get", {"id": 7, "tags": {"k": "v"}}), ("nodes/put", {"any": [None]})]
    assert not upstream.open


async def test_a_declared_error_keeps_its_code_details_status_and_time_to_wait() -> None:
    upstream = Scripted(
        UpstreamError("HTTP_404", Raw(b'{"why":"gone"}')), *[UpstreamError("HTTP_429", retry_after_ms=1)] * 3
    )
    async with in_memory(nodes(upstream)) as peer:
        with pytest.raises(OperationFailed) as missing:
            await peer.call("list/nodes/get", {"id": 1})
        with pytest.raises(OperationFailed) as limited:
            await peer.call("list/nodes/get", {"id": 1})
    assert (missing.value.failure.code, missing.value.details) == ("HTTP_404", {"why": "gone"})
    assert not missing.value.failure.retryable
    waits = DomainFailure("HTTP_429", "Too many", True, limited.value.failure.details, retry_after_ms=1)
    assert (limited.value.failure, limited.value.details) == (waits, {"retryAfterMs": 1})


async def test_secrets_in_the_details_of_an_error_are_removed() -> None:
    upstream = Scripted(UpstreamError("HTTP_404", Raw(b'{"why":"no","password":"hunter2hunter2"}')))
    async with in_memory(nodes(upstream)) as peer:
        with pytest.raises(OperationFailed) as caught:
            await peer.call("list/nodes/get", {"id": 1})
    assert "hunter2" not in str(caught.value.details)


async def test_an_undeclared_error_is_internal_and_its_code_stands_in_the_log(
    capfd: pytest.CaptureFixture[str],
) -> None:
    upstream = Scripted(UpstreamError("HTTP_418", Raw(b'{"teapot":1}')))
    async with in_memory(nodes(upstream)) as peer:
        with pytest.raises(InternalError):
            await peer.call("list/nodes/get", {"id": 1})
    assert (
        "import.error_undeclared method=list/nodes/get id=1 operation=list/nodes/get code=HTTP_418\n"
        in capfd.readouterr().err
    )


REPLIES = {"on": InternalError, "log": None, "off": None}


@pytest.mark.parametrize("validate", REPLIES)
async def test_an_answer_that_is_not_what_was_declared(validate: str, capfd: pytest.CaptureFixture[str]) -> None:
    upstream = Scripted(b'{"name":"secret","next":{"name":3}}')
    async with in_memory(nodes(upstream, validate=validate)) as peer:
        try:
            result = await peer.call("list/nodes/get", {"id": 1})
        except InternalError:
            assert validate == "on"
        else:
            assert validate != "on"
            assert result == {"name": "secret", "next": {"name": 3}}
    text = capfd.readouterr().err
    line = "import.reply_invalid method=list/nodes/get id=1 operation=list/nodes/get param=next.name keyword=type\n"
    assert (line in text) == (validate != "off")
    assert "secret" not in text


@pytest.mark.parametrize("validate", REPLIES)
async def test_an_answer_that_is_no_json_never_goes_out(validate: str) -> None:
    upstream = Scripted(b'{"name":')
    async with in_memory(nodes(upstream, validate=validate)) as peer:
        with pytest.raises(InternalError):
            await peer.call("list/nodes/get", {"id": 1})


async def test_details_that_are_not_what_was_declared_are_left_out_and_the_code_stays(
    capfd: pytest.CaptureFixture[str],
) -> None:
    upstream = Scripted(UpstreamError("HTTP_404", Raw(b'{"because":"secret"}')))
    async with in_memory(nodes(upstream)) as peer:
        with pytest.raises(OperationFailed) as caught:
            await peer.call("list/nodes/get", {"id": 1})
    assert (caught.value.failure.code, caught.value.failure.details) == ("HTTP_404", None)
    assert (
        "import.error_invalid method=list/nodes/get id=1 operation=list/nodes/get code=HTTP_404 param=why"
        in capfd.readouterr().err
    )


async def test_events_come_in_order_and_one_that_does_not_fit_ends_the_stream() -> None:
    upstream = Scripted(b"1", b"2", b'"three"', b"4")
    async with in_memory(nodes(upstream)) as peer, peer.subscribe("list/watch") as events:
        seen = [await anext(events), await anext(events)]
        with pytest.raises(InternalError):
            await anext(events)
    assert seen == [1, 2]
    assert upstream.streams_closed == 1


async def test_operations_are_internal_unless_they_are_exposed() -> None:
    for expose, external in (
        (False, set()),
        (("nodes/*",), {"list/nodes/get", "list/nodes/put"}),
        (("watch",), {"list/watch"}),
    ):
        service = nodes(Scripted(), expose=expose)
        assert {spec.name for spec in service.operations if spec.visibility == "external"} == external
    assert not nodes(Scripted(), scopes=["reader"]).operations[0].access.open
    async with in_memory(nodes(Scripted(), expose=False)) as peer:
        with pytest.raises(MethodNotFound):
            await peer.call("list/nodes/get", {"id": 1})


async def test_handlers_call_internal_ones_and_catch_their_errors() -> None:
    shop = Service("shop", uses=["list/nodes/get"])
    upstream = Scripted(
        b'{"name":"x"}',
        UpstreamError("HTTP_404", Raw(b'{"why":"gone"}')),
        UpstreamError("HTTP_429", retry_after_ms=1500),
    )

    @shop.query
    async def name(ctx: Context) -> list[str]:
        found: list[str] = []
        for _ in range(3):
            try:
                found.append((await ctx.call("list/nodes/get", {"id": 1}))["name"])
            except OperationError as exc:
                found.append(f"{exc.definition.code} {exc.details} {exc.retry_after_ms}")
            except CallFailed:
                found.append("failed")
        return found

    async with in_memory(shop, nodes(upstream, expose=False)) as peer:
        assert await peer.call("shop/name") == ["x", "HTTP_404 {'why': 'gone'} None", "HTTP_429 None 1500"]


async def test_the_contract_that_callers_see_is_the_one_that_was_imported() -> None:
    async with in_memory(nodes(Scripted())) as peer:
        schema = await peer.call("services/schema", {"name": "list/nodes/get"})
        methods = await peer.call("describeMethods")
    definitions = {name: IMPORTED.definitions[name] for name in ("Node",)}
    draft = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    assert schema["inputSchema"] == {**draft, **IMPORTED.operations[0].input, "$defs": definitions}
    assert schema["outputSchema"] == {**draft, "$ref": "#/$defs/Node", "$defs": definitions}
    first, second = schema["errorSchemas"]
    assert (first["code"], first["httpStatus"], first["retryable"]) == ("HTTP_404", 404, False)
    assert first["schema"]["$defs"].keys() == {"Problem"}
    assert (second["code"], second["schema"], second["retryable"]) == ("HTTP_429", None, True)
    (described,) = [each for each in methods if each["name"] == "list/nodes/get"]
    assert described["params"] == ["id: integer >= 1", "node?: object", "color?: one of red, blue", "tags?: object"]


def test_what_was_packed_is_what_comes_out_and_other_bytes_are_refused() -> None:
    packed = ImportArchive(pack(IMPORTED), Imported, ImportedOperation)
    assert tuple(packed.operation(index) for index in range(3)) == IMPORTED.operations
    assert [entry.has_result for entry in packed.entries] == [True, False, True]
    assert packed.head == msgspec.structs.replace(IMPORTED, operations=(), definitions={})
    assert "$defs" not in packed.document({"type": "string"})
    for wrong in (b"", b"\x90", pack(IMPORTED)[:-1], b"\xc1"):
        with pytest.raises(ValueError, match="not an import"):
            ImportArchive(wrong, Imported, ImportedOperation)


def test_a_name_that_can_be_none_is_one_line() -> None:
    wrong = Imported(operations=(ImportedOperation(name="a b", kind="query", input={}),))
    with pytest.raises(ImportFailed, match="an operation called 'a b'"):
        imported_service("n", ImportArchive(pack(wrong), Imported, ImportedOperation), Scripted(), ImportOptions())


async def test_the_upstream_is_opened_with_the_first_call_and_closed_at_the_end() -> None:
    upstream = Scripted(b'{"name":"x"}', b'{"name":"x"}')
    async with in_memory(nodes(upstream)) as peer:
        assert await peer.call("services/list")
        assert not upstream.open
        async with anyio.create_task_group() as tasks:
            for _ in range(2):
                tasks.start_soon(peer.call, "list/nodes/get", {"id": 1})
        assert upstream.open
        assert upstream.opens == 1
    assert not upstream.open


async def test_an_upstream_that_can_not_be_opened_fails_the_call_and_is_tried_again_with_the_next() -> None:
    upstream = Scripted(b'{"name":"x"}')
    upstream.refusals = 1
    async with in_memory(nodes(upstream)) as peer:
        with pytest.raises(InternalError):
            await peer.call("list/nodes/get", {"id": 1})
        assert await peer.call("list/nodes/get", {"id": 1}) == {"name": "x"}


async def test_tools_come_in_pages_of_bounded_size_and_huge_results_are_not_described() -> None:
    wide = {f"member_{number}": {"type": "string", "description": "x" * 200} for number in range(1000)}
    large = {"type": "object", "properties": wide}
    operations = tuple(
        ImportedOperation(
            name=f"op{number:02}", kind="query", input=large if number else {"type": "object"}, output=large
        )
        for number in range(30)
    )
    packed = ImportArchive(pack(Imported(operations=operations)), Imported, ImportedOperation)
    service = imported_service("many", packed, Scripted(), ImportOptions(expose=True))
    names: list[str] = []
    cursor: dict[str, str] = {}
    pages = 0
    async with in_memory(service, dialect="mcp") as peer:
        while cursor or not pages:
            page = await peer.call("tools/list", cursor)
            assert len(msgspec.json.encode(page)) < PAGE_BYTES + 2 * len(msgspec.json.encode(large))
            names += [tool["name"] for tool in page["tools"]]
            assert all("outputSchema" not in tool for tool in page["tools"])
            cursor = {"cursor": page["nextCursor"]} if "nextCursor" in page else {}
            pages += 1
    assert names == [f"many_op{number:02}" for number in range(30)]
    assert pages > 1


DOUBLED = {f"S{at}": {"anyOf": [{"$ref": f"#/$defs/S{at + 1}"}] * 2} for at in range(40)} | {"S40": True}


@pytest.mark.parametrize("part", ["input", "output"])
@pytest.mark.parametrize("validate", REPLIES)
async def test_a_schema_that_can_not_be_checked_makes_its_operation_unavailable_before_the_upstream_is_called(
    part: str, validate: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    schemas = {"input": {"type": "object"}, "output": {"type": "null"}, part: {"$ref": "#/$defs/S0"}}
    operation = ImportedOperation(name="put", kind="mutation", **schemas)
    data = pack(Imported(title="", operations=(operation,), definitions=DOUBLED))
    upstream = Scripted(b"null")
    options = ImportOptions(expose=True, validate=validate)
    service = imported_service("list", ImportArchive(data, Imported, ImportedOperation), upstream, options)
    async with in_memory(service) as peer:
        if validate == "on":
            for _ in range(2):
                with pytest.raises(Unavailable):
                    await peer.call("list/put", {})
        else:
            assert await peer.call("list/put", {}) is None
    assert len(upstream.calls) == (validate != "on")
    text = capfd.readouterr().err
    assert text.count("import.schema_unusable") == {"on": 2, "log": 1, "off": 0}[validate]
    assert "Traceback" not in text
