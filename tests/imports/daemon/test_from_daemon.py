"""`from_daemon`, and `from_openapi` of a document that discreet has written: what becomes of another daemon as a service."""

from __future__ import annotations

import datetime
import decimal
import enum
import hashlib
import json
import sys
import uuid
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Optional

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET, Meta

from discreet import DeclarationError, OperationError, ServerEvent, Service, from_daemon, from_openapi
from discreet.client.errors import MethodNotFound
from discreet.compatibility.changes import additions, breaking_changes
from discreet.gateway.openapi.document import About, document_text, openapi_document
from discreet.imports.configured import service_of
from discreet.imports.daemon.contracts import DaemonImport, import_of, read_openrpc
from discreet.imports.from_daemon import upstream_of
from discreet.imports.settings import ImportSettings
from discreet.imports.targets import Command
from discreet.schemas.documents import OperationSchema, Snapshot, snapshot
from discreet.schemas.openrpc import openrpc_document
from discreet.testing import in_memory
from support.far_app import far
from support.gateways import http_daemon
from support.mounts import FAR_APP, assembled, serve_command
from support.programs import DISCREET, environment, finished

pytestmark = pytest.mark.anyio


# -- services of generated operations: of every kind, with params, results and errors of many types --


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Tree(msgspec.Struct):
    """A node and what is below it."""

    value: int
    below: Annotated[list[Tree], Meta(max_length=2)] = []


class Closed(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    first_name: str
    last_name: str | None = None


class Slots(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    a: int
    b: str = ""


class Cat(msgspec.Struct, tag=True):
    lives: int


class Dog(msgspec.Struct, tag=True):
    name: str


class Pair(NamedTuple):
    left: int
    right: str


Other = msgspec.defstruct("Closed", [("another", Tree)])
"""A type of a name that another one has, too."""

LEAVES: tuple[Any, ...] = (
    str, int, float, bool, bytes, Any, Literal["a", "b"], Literal["a", 1], Color, decimal.Decimal, uuid.UUID, datetime.date,
    datetime.datetime, datetime.time, datetime.timedelta, Tree, Closed, Other, Slots, Pair, Cat | Dog, tuple[int, str],
    frozenset[int], int | str, Annotated[str, Meta(min_length=2, max_length=5)], Annotated[int, Meta(ge=3, le=300)],
    Annotated[str, Meta(pattern="^[a-z]{2,4}[0-9]$", description="A word.", examples=["ab1"])],
    Annotated[datetime.datetime, Meta(tz=True)],
)  # fmt: skip

WRAPPERS: tuple[Any, ...] = (lambda tp: list[tp], lambda tp: dict[str, tp], lambda tp: Optional[tp])  # noqa: UP045
TYPES = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: st.builds(lambda wrap, tp: wrap(tp), st.sampled_from(WRAPPERS), inner),
    max_leaves=2,
)
NAMES = st.sampled_from(("alpha", "beta", "gamma", "delta"))
KINDS = st.sampled_from(("query", "mutation", "subscription"))
CODES = ("GONE", "BUSY", "LIMIT_REACHED", "NOT_HERE")


@st.composite
def declared_errors(draw: st.DrawFn) -> list[type[OperationError]]:
    """Declared errors of distinct codes, with details or without."""
    found: list[type[OperationError]] = []
    for code in draw(st.lists(st.sampled_from(CODES), max_size=3, unique=True)):
        fields = draw(st.dictionaries(NAMES, TYPES, max_size=2))
        body: dict[str, Any] = {
            "__annotations__": fields,
            "__doc__": draw(st.sampled_from(("It is so.", "Two. Parts."))),
        }
        status = draw(st.sampled_from((400, 404, 409, 429, 500, 503)))
        message = draw(st.sampled_from((None, "Told to callers")))
        options = {"code": code, "http_status": status, "retryable": draw(st.booleans()), "message": message}
        found.append(type(OperationError)(code.title(), (OperationError,), body, **options))
    return found


@st.composite
def services(draw: st.DrawFn, namespace: str = "s") -> Service:
    """A service with up to four operations."""
    service = Service(namespace, description="Generated.", version="1.2.3")
    for name in draw(st.lists(NAMES, min_size=1, unique=True)):
        kind = draw(KINDS)
        options: dict[str, Any] = {
            "errors": draw(declared_errors()),
            "description": draw(st.sampled_from(("", "Does it."))),
        }
        timeout = draw(st.sampled_from((UNSET, None, 1.5)))
        if timeout is not UNSET:
            options["timeout"] = timeout
        getattr(service, kind)(name=name, **options)(_handler(draw, kind))
    return service


def _handler(draw: st.DrawFn, kind: str) -> Any:
    params = draw(st.dictionaries(NAMES, TYPES, max_size=3))
    default = draw(st.booleans())
    written = ", ".join(f"{name}=None" if default else name for name in params)
    returns = draw(TYPES | st.none())
    if kind == "subscription":
        event = draw(TYPES)
        returns = AsyncIterator[ServerEvent[event]] if draw(st.booleans()) else AsyncIterator[event]  # type: ignore[valid-type]
    scope: dict[str, Any] = {}
    body = "    yield None\n" if kind == "subscription" else "    return None\n"
    exec(f"async def handler({written}):\n{body}", scope)
    handler = scope["handler"]
    hints = {name: Optional[tp] if default else tp for name, tp in params.items()}  # noqa: UP045
    handler.__annotations__ = {**hints, "return": returns}
    return handler


# -- what is imported of them --


def written(service: Service, url: str = "https://example.org/base") -> bytes:
    about = About(title="Far", version="3.2.1", url=url)
    return document_text(openapi_document(service.operations, about))


def by_openapi(service: Service) -> Service:
    return from_openapi(written(service), namespace="m", expose=True)


def contracts_of(service: Service) -> DaemonImport:
    return import_of(snapshot(service.operations).operations.values())


def mounted(found: DaemonImport) -> Service:
    return assembled(found, upstream_of("m", Command(("never started",))), "m")


def imported(service: Service) -> Snapshot:
    """The operations under the names that they have at home."""
    operations = snapshot(service.operations).operations
    return Snapshot(1, {name.removeprefix("m/"): each for name, each in operations.items()})


def differences(one: Snapshot, other: Snapshot) -> list[Any]:
    pairs = ((one, other), (other, one))
    return [change for pair in pairs for find in (breaking_changes, additions) for change in find(*pair)]


def facts(each: OperationSchema) -> Any:
    """What comparisons of schemas don't look at."""
    errors = sorted(
        (error.code, error.http_status, error.grpc_status, error.retryable, error.message, error.description)
        for error in each.error_schemas
    )
    return each.kind, each.description, each.timeout, each.numbered, errors


@pytest.mark.parametrize("import_it", [by_openapi, lambda service: mounted(contracts_of(service))])
@settings(max_examples=40)
@given(services())
def test_what_is_imported_of_a_daemon_is_what_it_offers(
    import_it: Callable[[Service], Service], service: Service
) -> None:
    found, original = imported(import_it(service)), snapshot(service.operations)
    assert differences(original, found) == []
    for name, theirs in original.operations.items():
        assert facts(found.operations[name]) == facts(theirs)


@settings(max_examples=20)
@given(services())
def test_it_is_written_again_as_it_was(service: Service) -> None:
    once = by_openapi(service)
    found, original = imported(by_openapi(once)), snapshot(once.operations)
    assert found.operations.keys() == original.operations.keys()
    assert breaking_changes(original, found) == breaking_changes(found, original) == ()


@settings(max_examples=40)
@given(services())
def test_an_openrpc_document_of_discreet_keeps_kinds_schemas_and_codes(service: Service) -> None:
    document = msgspec.json.encode(openrpc_document(service.operations, version="1"))
    found, original = imported(mounted(read_openrpc(document))), snapshot(service.operations)
    for name, theirs in original.operations.items():
        ours = found.operations[name]
        assert (ours.kind, ours.description) == (theirs.kind, theirs.description)
        assert [(error.code, error.retryable, error.schema is None) for error in ours.error_schemas] == [
            (error.code, error.retryable, error.schema is None) for error in theirs.error_schemas
        ]
    changes = [change.what for change in breaking_changes(original, found)]
    assert [what for what in changes if "httpStatus" not in what and "position" not in what] == []


def test_types_of_one_name_are_told_apart_and_equal_ones_are_shared() -> None:
    one = msgspec.defstruct("Thing", [("a", int)])
    two = msgspec.defstruct("Thing", [("b", str)])
    service = Service("s")
    for name, tp in (("first", one), ("second", two), ("third", one)):

        async def handler(things: Any) -> None: ...

        handler.__annotations__ = {"things": list[tp], "return": None}  # type: ignore[valid-type]
        service.query(name=name)(handler)
    found = contracts_of(service)
    assert sorted(found.definitions) == ["Thing", "Thing_2"]
    assert [json.dumps(each.input).count("Thing_2") for each in found.operations] == [0, 1, 0]


def test_a_notification_is_a_mutation_and_what_takes_no_object_is_left_out() -> None:
    service = Service("s")

    @service.notification()
    def hear(text: str) -> None: ...

    @service.query()
    def sorts(items: list[int], /) -> None: ...

    found = contracts_of(service)
    assert [(each.method, each.kind) for each in found.operations] == [("s/hear", "mutation")]
    assert {(note.pointer, note.kind) for note in found.notes} == {("/s/hear", "changed"), ("/s/sorts", "left-out")}


def test_a_contract_whose_params_refer_to_themselves_takes_no_stack() -> None:
    again = {"$ref": "#/$defs/A"}
    schema = {**again, "$defs": {"A": {"anyOf": [again, again]}}}
    (contract,) = snapshot(generated_query().operations).operations.values()
    (operation,) = import_of([msgspec.structs.replace(contract, input_schema=schema)]).operations
    assert operation.input == again


def generated_query() -> Service:
    service = Service("s")

    @service.query
    def ask(text: str) -> None: ...

    return service


async def test_operations_have_their_own_names_below_the_namespace_and_only_exposed_ones_are_called() -> None:
    command = serve_command()
    expose = ["who", "far/item"]
    service = from_daemon(
        command.words, namespace="m", env=command.env, rename={"far/pid": "who"}, exclude=["far/s*"], expose=expose
    )
    found = {spec.name: (spec.kind, spec.visibility) for spec in service.operations}
    assert found["m/far/item"] == ("query", "external") and found["m/far/count"] == ("query", "internal")
    assert not {"m/far/pid", "m/far/store"} & found.keys()
    async with in_memory(service) as peer:
        assert await peer.call("m/who") > 0
        assert await peer.call("m/far/item", {"name": "a"}) == {"name": "a", "points": []}
        with pytest.raises(MethodNotFound):
            await peer.call("m/far/count", {"what": ""})


async def test_a_document_is_called_at_its_server_or_where_it_is_said(tmp_path: Path) -> None:
    pytest.importorskip("httptools")
    with http_daemon(tmp_path, f"{FAR_APP}:far", "--http-operations") as url:
        of_url = from_openapi(f"{url.rstrip('/')}/openapi.json", namespace="m", expose=True, allow_private=True)
        of_text = from_openapi(written(far), namespace="m", expose=True, base_url=url, allow_private=True)
        by_url = from_daemon(url, namespace="m", expose=True, allow_private=True)
        for service in (of_url, of_text, by_url):
            async with in_memory(service) as peer:
                assert await peer.call("m/far/item", {"name": "a"}) == {"name": "a", "points": []}


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"include": ["far/itm"]}, "include: no operation is called far/itm; nearest: far/item"),
        ({"exclude": ["*"]}, "is imported"),
        ({"base_url": "ftp://x"}, "give base_url"),
        ({"base_url": "http://127.0.0.1:1"}, "allow_private"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(options: dict[str, object], reason: str) -> None:
    with pytest.raises(DeclarationError) as caught:
        from_openapi(written(far), **{"namespace": "m", **options})  # type: ignore[arg-type]
    assert reason in str(caught.value)


LOCKED = """
from discreet import Context, Service
locked = Service("locked")

@locked.query(scopes=["vault"])
async def who(ctx: Context) -> str:
    return ctx.identity.subject
"""
TOKEN = "abc123abc123"


async def test_a_daemon_that_asks_for_credentials_is_told_the_mounts(tmp_path: Path) -> None:
    app, file = tmp_path / "locked_app.py", tmp_path / "token"
    app.write_text(LOCKED, encoding="utf-8")
    file.write_text(TOKEN, encoding="utf-8")
    digest = hashlib.sha256(TOKEN.encode()).hexdigest()
    command = serve_command(f"{app}:locked", "--token", f"mounter:{digest}:vault")
    with pytest.raises(DeclarationError, match="it offers no operation to this caller"):
        from_daemon(command.words, namespace="m", env=command.env)
    service = from_daemon(command.words, namespace="m", env=command.env, token=TOKEN, expose=True)
    named = from_daemon(command.words, namespace="n", env=command.env, token=TOKEN, credential="far", expose=True)
    table = ImportSettings(name="t", daemon=command.words, credential="far", expose=True)
    configured = service_of(table, {"far": str(file)})
    async with in_memory(service, named, configured, credentials={"far": TOKEN}) as peer:
        for namespace in ("m", "n", "t"):
            sent = {"authorization": "Bearer of-the-caller"}
            assert await peer.call(f"{namespace}/locked/who", service_params=sent) == "mounter"


def test_a_daemon_that_is_not_there_is_one_line_and_status_2(tmp_path: Path) -> None:
    app = tmp_path / "outer_app.py"
    app.write_text("from discreet import from_daemon\nouter = from_daemon(['/none/such'], namespace='m')\n")
    ended = finished([*DISCREET, "serve", f"{app}:outer"], tmp_path, **environment())
    assert ended.returncode == 2
    assert "can't run /none/such: No such file or directory" in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_nothing_of_imports_loads_without_one() -> None:
    code = (
        "import sys, discreet.daemon.server, discreet.daemon.hosting, discreet.daemon.connection.connection;"
        "print([name for name in sys.modules if name.startswith(('discreet.imports', 'discreet.client'))])"
    )
    assert finished([sys.executable, "-P", "-c", code]).stdout.strip() == "[]"
