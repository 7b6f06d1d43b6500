"""An OpenRPC document as an import: what any server offers that answers `rpc.discover`. Reads documents, asks nobody.

Of a document that discreet has written nothing is lost but statuses, deadlines and the order of params. Of any other, a method
without `x-kind` is a mutation, and an error is told by its JSON-RPC number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, final

import msgspec
from msgspec import UNSET, Struct, UnsetType, field

from ...daemon.operations.spec import check_name
from ...errors.codes import RESERVED_CODES
from ...errors.decoders import decoder_for
from ...schemas.json_schema import JsonSchema
from ...schemas.named_types import LOCAL, SHARED, Schema, references_of, require_schema, rewritten, with_inner
from ..model import ImportedError, Note
from .model import DaemonImport, DaemonOperation

MOST_REFERENCES: Final = 8
"""How many references are followed one after the other, where one leads to the next."""

_NOT_IN_NAMES: Final = re.compile(r"[^\w.$/-]+", re.ASCII)
_CODE: Final = re.compile(r"[A-Z][A-Z0-9_]{0,63}")


class _Info(Struct, frozen=True):
    title: str = ""
    version: str = ""
    description: str = ""


class _Components(Struct, frozen=True):
    schemas: dict[str, Any] = {}  # Any: JSON, as below


class _Document(Struct, frozen=True):
    openrpc: str
    methods: list[dict[str, Any]]
    info: _Info = _Info()
    components: _Components = _Components()


class _Content(Struct, frozen=True):
    name: str = ""
    schema: Any = True
    required: bool = False


class _Error(Struct, frozen=True):
    code: int
    message: str = ""
    data: Any = UNSET


class _Method(Struct, frozen=True):
    name: str
    description: str = ""
    summary: str = ""
    params: list[_Content] = []
    result: _Content | None = None
    errors: list[_Error] = []
    structure: Literal["by-name", "by-position", "either"] = field(name="paramStructure", default="either")
    kind: Literal["query", "mutation", "subscription", "notification"] = field(name="x-kind", default="mutation")
    event: Any = field(name="x-event", default=True)
    further: Any = field(name="x-further-params", default=UNSET)


class _Unusable(Exception):
    """Why a method can't be mounted, in one line."""


def read_openrpc(text: bytes) -> DaemonImport:
    """What a document offers. Raises `ValueError` for a text that is none."""
    try:
        tree = decoder_for(dict[str, Any])(text)
        document = decoder_for(_Document)(text)
        definitions = {name: _schema(schema) for name, schema in document.components.schemas.items()}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError):
        raise ValueError("not an OpenRPC document") from None
    reader = _Reader(tree, frozenset(definitions))
    operations = tuple(reader.operations(document.methods))
    return DaemonImport(
        title=document.info.title,
        version=document.info.version,
        description=document.info.description,
        operations=operations,
        definitions=definitions,
        notes=tuple(reader.notes),
        native=False,
    )


def _schema(schema: Any) -> Schema:
    """A schema of draft 07 in the words of 2020-12. Raises `ValueError` for what is none."""
    modern = _modern(schema)
    require_schema(modern)
    return rewritten(modern, _Local())


def _modern(schema: Any) -> Any:
    if not isinstance(schema, dict):
        return schema
    if isinstance(schema.get("items"), list):
        renamed = {"items": "prefixItems", "additionalItems": "items"}
        schema = {renamed.get(keyword, keyword): value for keyword, value in schema.items()}
    match schema:
        case {"allOf": [{"$ref": reference} as only]} if len(only) == 1 and "$ref" not in schema:
            schema = {"$ref": reference, **{word: value for word, value in schema.items() if word != "allOf"}}
        case _:  # beside other keywords, draft 07 has references in such a list
            pass
    try:
        return with_inner(schema, _modern)
    except (AttributeError, TypeError):
        raise ValueError("no schema") from None


class _Local(dict[str, str]):
    """References to shared types, as an import refers to them; any other as it is."""

    def get(self, key: str, default: Any = None) -> Any:
        return LOCAL + key.removeprefix(SHARED) if key.startswith(SHARED) else default


@final
class _Reader:
    """Reads the methods of one document. `notes` are of those that differ or are left out."""

    def __init__(self, document: Mapping[str, Any], definitions: frozenset[str]) -> None:
        self.notes: list[Note] = []
        self._document = document
        self._definitions = definitions
        self._names: set[str] = set()

    def operations(self, methods: list[dict[str, Any]]) -> Iterator[DaemonOperation]:
        for index, tree in enumerate(methods):
            pointer = f"/methods/{index}"
            try:
                method = decoder_for(_Method)(msgspec.json.encode(self._resolved(tree)))
                if method.name.startswith("rpc."):  # JSON-RPC 2.0, section 8: of the server itself
                    continue
                yield self._operation(method, pointer)
            except _Unusable as exc:
                self.notes.append(Note(pointer, "left-out", str(exc)))
            except (msgspec.DecodeError, ValueError, TypeError, RecursionError):
                self.notes.append(Note(pointer, "left-out", "it has another form than OpenRPC says"))

    def _resolved(self, tree: dict[str, Any]) -> dict[str, Any]:
        """A method with what its references to descriptors and errors refer to."""
        lists = {name: [self._target(each) for each in tree.get(name) or []] for name in ("params", "errors")}
        return {**tree, **lists, **({"result": self._target(tree["result"])} if "result" in tree else {})}

    def _target(self, value: Any) -> Any:
        for _ in range(MOST_REFERENCES):
            if not (isinstance(value, dict) and isinstance(value.get("$ref"), str)):
                return value
            value = self._at(value["$ref"])
        raise _Unusable("its references lead in a circle")

    def _at(self, reference: str) -> Any:
        found: Any = self._document
        for part in reference.removeprefix("#/").split("/"):
            key = part.replace("~1", "/").replace("~0", "~")
            if not (reference.startswith("#/") and isinstance(found, dict) and key in found):
                raise _Unusable("it refers to what the document does not have")
            found = found[key]
        return found

    def _operation(self, method: _Method, pointer: str) -> DaemonOperation:
        streams = method.kind == "subscription"
        errors = {code: error for error in method.errors for code in [self._code(error)] if code not in RESERVED_CODES}
        if method.kind == "notification":
            self.notes.append(Note(pointer, "changed", "a notification is a mutation here"))
        return DaemonOperation(
            name=self._name(method.name, pointer),
            method=method.name,
            kind="mutation" if method.kind == "notification" else method.kind,
            input=self._input(method),
            output=self._checked(method.event if streams else True if method.result is None else method.result.schema),
            errors=tuple(self._error(code, error) for code, error in errors.items()),
            description=method.description or method.summary,
            pointer=pointer,
            positions=tuple(param.name for param in method.params) if method.structure == "by-position" else None,
            codes={error.code: code for code, error in errors.items() if _told(error) is None},
        )

    def _name(self, method: str, pointer: str) -> str:
        name = base = _NOT_IN_NAMES.sub("_", method).strip("/")
        count = 1
        while name in self._names:
            count += 1
            name = f"{base}_{count}"
        try:
            check_name(name)
        except ValueError:
            raise _Unusable("its name can't be that of an operation") from None
        if name != method:
            self.notes.append(Note(pointer, "renamed", f"{name} in place of a name that operations can't have"))
        self._names.add(name)
        return name

    def _input(self, method: _Method) -> JsonSchema:
        names = [param.name for param in method.params]
        if "" in names or len(set(names)) < len(names):
            raise _Unusable("its params have no names of their own")
        return {
            "type": "object",
            "properties": {param.name: self._checked(param.schema) for param in method.params},
            "required": [param.name for param in method.params if param.required],
            "additionalProperties": False if isinstance(method.further, UnsetType) else self._checked(method.further),
        }

    def _checked(self, schema: Any) -> Schema:
        read = _schema(schema)
        for reference in references_of(read):
            if not (reference.startswith(LOCAL) and reference.removeprefix(LOCAL) in self._definitions):
                raise _Unusable("a schema refers to what is not in components/schemas")
        return read

    @staticmethod
    def _code(error: _Error) -> str:
        """The code that an error of discreet tells, else one made of its number."""
        return _told(error) or f"RPC_{'MINUS_' * (error.code < 0)}{abs(error.code)}"

    def _error(self, code: str, error: _Error) -> ImportedError:
        facts: Mapping[str, Any] = {} if _told(error) is None else error.data["properties"]
        schema = None if isinstance(error.data, UnsetType) else self._checked(error.data)
        if facts:
            schema = self._checked(facts["details"]) if "details" in facts else None
        retryable = facts.get("retryable", {})
        return ImportedError(
            code=code,
            http_status=500,
            description=error.message,
            schema=schema,
            retryable=isinstance(retryable, dict) and retryable.get("const") is True,
            message=error.message,
        )


def _told(error: _Error) -> str | None:
    """The code in the data of an error of discreet, by their schema; None for any other error."""
    match error.data:
        case {"properties": {"code": {"const": str(code)}}} if _CODE.fullmatch(code):
            return code
        case _:
            return None
