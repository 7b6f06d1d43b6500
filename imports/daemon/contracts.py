"""Reads the operations of another daemon as an import: from its contracts, or from the OpenRPC document of any server. Asks no
server.

An OpenRPC document that discreet has written loses nothing but statuses, deadlines and the order of params. In any other
document, a method without `x-kind` is a mutation, and errors differ by their JSON-RPC numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Literal, final

import msgspec
from msgspec import Struct, UnsetType
from msgspec.structs import replace

from ...daemon import plugins
from ...errors.codes import RESERVED_CODES
from ...errors.decoders import DECODE_ERRORS, decoder_for
from ...schemas.documents import ErrorSchema, OfferSchema, OperationSchema, Snapshot
from ...schemas.named_types import LOCAL, NamedTypes
from ...schemas.phrases import schema_kinds
from ..arguments import UniqueNames, operation_name
from ..model import Imported, ImportedError, ImportedOperation, JsonSchema, Note, Schema
from ..openapi.document import Documents, Node, PartError
from ..openapi.schemas import Direction, SchemaReader


class DaemonOperation(ImportedOperation, frozen=True, kw_only=True):
    """`method` is its name there. A server that takes params by position alone gets them in the order of `positions`. `codes` are
    those of errors that the server tells apart by their JSON-RPC numbers. `offer` is as what clients of MCP get it.
    """

    method: str
    positions: tuple[str, ...] | None = None
    codes: Mapping[int, str] = {}
    offer: OfferSchema | None = None


class DaemonImport(Imported, frozen=True, kw_only=True):
    """The operations of another daemon. `url` is the address that its OpenAPI document names; empty for a command. `native` is
    whether it is one of discreet, which checks params and results itself."""

    operations: tuple[DaemonOperation, ...] = ()
    url: str = ""
    native: bool = True


Kind = Literal["query", "mutation", "subscription"]

KINDS: Final[dict[str, Kind]] = {
    "query": "query",
    "mutation": "mutation",
    "subscription": "subscription",
    "notification": "mutation",
}


def import_of(operations: Iterable[OperationSchema]) -> DaemonImport:
    """The import of these operations, in this order. Types that several of them refer to by one name are shared."""
    types = NamedTypes(prefix=LOCAL)
    read: list[DaemonOperation] = []
    notes: list[Note] = []
    for operation in operations:
        if reason := _unusable(operation):
            notes.append(Note(f"/{operation.name}", "left-out", reason))
            continue
        if operation.kind == "notification":
            notes.append(Note(f"/{operation.name}", "changed", "a notification is a mutation here"))
        read.append(_operation(operation, types))
    return DaemonImport(operations=tuple(read), definitions=types.schemas, notes=tuple(notes))


def _unusable(operation: OperationSchema) -> str:
    """Why an operation can't be mounted; empty where it can."""
    if operation.kind not in KINDS:
        return f"there is no kind {operation.kind}"
    root = operation.input_schema
    return "" if "object" in schema_kinds(root, root) else "its params are no object"


def _operation(operation: OperationSchema, types: NamedTypes) -> DaemonOperation:
    return DaemonOperation(
        name=operation.name,
        method=operation.name,
        kind=KINDS[operation.kind],
        input=object_schema(types.include(operation.input_schema)),
        output=types.include(operation.output_schema),
        errors=tuple(_error(error, types) for error in operation.error_schemas),
        description=operation.description,
        pointer=f"/{operation.name}",
        timeout=operation.timeout,
        numbered=operation.numbered is True,
        offer=None if isinstance(operation.offer, UnsetType) else operation.offer,
    )


def object_schema(schema: Schema) -> JsonSchema:
    """The schema of params, which is no boolean."""
    return schema if isinstance(schema, dict) else {}


def _error(error: ErrorSchema, types: NamedTypes) -> ImportedError:
    return ImportedError(
        code=error.code,
        http_status=error.http_status,
        description=error.description,
        schema=None if error.schema is None else types.include(error.schema),
        retryable=error.retryable,
        message=error.message,
    )


def without_numbers(found: DaemonImport) -> DaemonImport:
    """Return the import for a connection whose events have no numbers."""
    return replace(found, operations=tuple(replace(each, numbered=False) for each in found.operations))


class _Info(Struct, frozen=True):
    title: str = ""
    version: str = ""


class _Server(Struct, frozen=True):
    url: str = ""


class _About(Struct, frozen=True):
    info: _Info = _Info()
    servers: tuple[_Server, ...] = ()


def read_own_document(text: bytes) -> DaemonImport | None:
    """Read a document that discreet has written; None for a document of another program, or for another text."""
    reader = plugins.load("reader", "openapi")
    if not reader.is_openapi(text):
        return None
    try:
        snapshot: Snapshot = reader.read_openapi(text)
        about = decoder_for(_About)(text)
    except (ValueError, msgspec.DecodeError):
        return None
    found = import_of(snapshot.operations.values())
    url = about.servers[0].url if about.servers else ""
    return replace(found, title=about.info.title, version=about.info.version, url=url)


_CODE: Final = re.compile(r"[A-Z][A-Z0-9_]{0,63}")
_STRUCTURES: Final = ("by-name", "by-position", "either")


def read_openrpc(text: bytes) -> DaemonImport:
    """Read the operations of a document. Raises `ValueError` for a text that is none."""
    try:
        tree = decoder_for(dict[str, Any])(text)
    except DECODE_ERRORS:
        tree = {}
    documents = Documents(tree)
    root = documents.first.root
    methods, info = root.get("methods"), root.get("info") or root
    if not isinstance(tree.get("openrpc"), str) or methods is None or not isinstance(methods.value, list):
        raise ValueError("not an OpenRPC document")
    reader = _Reader(root)
    operations = tuple(reader.operations(methods))
    return DaemonImport(
        title=info.prose("title"),
        version=info.prose("version"),
        description=info.prose("description"),
        operations=operations,
        definitions=reader.schemas.finish(),
        notes=tuple(documents.notes.values()),
        native=False,
    )


@final
class _Reader:
    """Reads the methods of one document."""

    def __init__(self, root: Node) -> None:
        self.schemas = SchemaReader(root.component_names())
        self._names = UniqueNames()

    def operations(self, methods: Node) -> Iterator[DaemonOperation]:
        for node in methods.items():
            try:
                method = node.text("name")
                if not method.startswith("rpc."):  # JSON-RPC 2.0, section 8: of the server itself
                    yield self._operation(method, node)
            except PartError as exc:
                node.note("left-out", exc.reason)

    def _operation(self, method: str, node: Node) -> DaemonOperation:
        kind, structure = node.text("x-kind") or "mutation", node.text("paramStructure") or "either"
        if not method or kind not in KINDS or structure not in _STRUCTURES:
            raise node.wrong("has another form than OpenRPC says")
        params = list(_targets(node.get("params")))
        result = node.get("x-event") if kind == "subscription" else node.get("result")
        result = result and result.followed() if kind == "subscription" else result and result.followed().get("schema")
        errors = {code: each for each in _targets(node.get("errors")) for code in [_code(each)]}
        errors = {code: each for code, each in errors.items() if code not in RESERVED_CODES}
        operation = DaemonOperation(
            name=operation_name(method),
            method=method,
            kind=KINDS[kind],
            input=self._input(params, node),
            output=self._schema(result, "output"),
            errors=tuple(self._error(code, each) for code, each in errors.items()),
            description=node.prose("description") or node.prose("summary"),
            pointer=node.pointer,
            positions=tuple(each.text("name") for each in params) if structure == "by-position" else None,
            codes={each.value["code"]: code for code, each in errors.items() if _told(each) is None},
        )
        return self._named(operation, node, is_notification=kind == "notification")

    def _named(self, operation: DaemonOperation, node: Node, *, is_notification: bool) -> DaemonOperation:
        if is_notification:
            node.note("changed", "a notification is a mutation here")
        name = self._names.add(operation.name)
        if name != operation.method:
            node.note("renamed", f"{name} in place of a name that operations can't have")
        return replace(operation, name=name)

    def _input(self, params: list[Node], node: Node) -> JsonSchema:
        names = [param.text("name") for param in params]
        if "" in names or len(set(names)) < len(names):
            raise node.wrong("its params have no names of their own")
        further = node.get("x-further-params")
        schemas = [self._schema(param.get("schema"), "input") for param in params]
        return {
            "type": "object",
            "properties": dict(zip(names, schemas, strict=True)),
            "required": [name for name, param in zip(names, params, strict=True) if param.flag("required")],
            "additionalProperties": False if further is None else self._schema(further, "input"),
        }

    def _schema(self, node: Node | None, direction: Direction) -> Schema:
        return True if node is None else self.schemas.read(node, direction)

    def _error(self, code: str, node: Node) -> ImportedError:
        data = node.get("data")
        retryable: Any = None
        if _told(node) is not None:
            facts = data and data.get("properties")
            data = facts and facts.get("details")
            retryable = facts and facts.get("retryable")
        return ImportedError(
            code=code,
            http_status=500,
            description=node.prose("message"),
            schema=None if data is None else self._schema(data, "output"),
            retryable=retryable is not None and retryable.value == {"const": True},
            message=node.prose("message"),
        )


def _targets(nodes: Node | None) -> Iterator[Node]:
    """Return the objects in a list, or those that it refers to."""
    for each in nodes.items() if nodes is not None else ():
        found = each.followed()
        found.object()
        yield found


def _code(error: Node) -> str:
    """The code that an error of discreet tells, else one made of its number."""
    number = error.value.get("code")
    if not isinstance(number, int):
        raise error.wrong("an error needs a number")
    return _told(error) or f"RPC_{'MINUS_' * (number < 0)}{abs(number)}"


def _told(error: Node) -> str | None:
    """The code in the data of an error of discreet, by their schema; None for any other error."""
    match error.value.get("data"):
        case {"properties": {"code": {"const": str(code)}}} if _CODE.fullmatch(code):
            return code
        case _:
            return None
