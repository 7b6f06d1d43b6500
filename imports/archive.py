"""What an import offers as one text of bytes: an index, and each operation and type by itself, decoded when somebody asks.

A document of some megabytes would be ten times as large as Python objects, of which a daemon needs few. The same bytes are what a
cache keeps. Reads no document and calls nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, Generic, TypeVar, final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from ..daemon.operations.spec import OperationKind
from ..errors.decoders import build_msgpack_decoder
from .model import Imported, ImportedOperation, JsonSchema, Schema

FORMAT: Final = 8
"""The version of these bytes. Increment it with every change of the structs that they hold."""

_REFERENCE: Final = "#/$defs/"
_DECODED: Final = 64
"""Operations that are kept in decoded form."""
_TYPES: Final = 512
"""Shared types that are."""

Operation = TypeVar("Operation", bound=ImportedOperation)


class Entry(Struct, frozen=True):
    """What a daemon needs to know of an operation before the first call of it: some of its members, schemas as bytes."""

    name: str
    kind: OperationKind
    output: Raw
    errors: list[Raw]
    description: str
    idempotent: bool
    numbered: bool
    timeout: float | None | UnsetType = UNSET

    @property
    def has_result(self) -> bool:
        return self.output != _NULL


class _Bytes(Struct, frozen=True, array_like=True):
    format: int
    head: Raw
    operations: list[Raw]
    definitions: dict[str, Raw]


_decode_bytes: Final = msgspec.msgpack.Decoder(_Bytes).decode
_decode_entry: Final = msgspec.msgpack.Decoder(Entry).decode
_encode: Final = msgspec.msgpack.Encoder().encode
_NULL: Final = Raw(_encode({"type": "null"}))


def pack(imported: Imported) -> bytes:
    """Return the bytes of an import."""
    head = msgspec.structs.replace(imported, operations=(), definitions={})
    operations = [Raw(_encode(each)) for each in imported.operations]
    definitions = {name: Raw(_encode(schema)) for name, schema in imported.definitions.items()}
    return _encode(_Bytes(FORMAT, Raw(_encode(head)), operations, definitions))


@final
class ImportArchive(Generic[Operation]):
    """The import in these bytes. `entries` are in the order of the document. Raises `ValueError` for bytes that `pack` has not
    made."""

    def __init__(self, data: bytes, head: type[Imported], operation: type[Operation]) -> None:
        try:
            self._bytes: Final[_Bytes] = _decode_bytes(data)
            self.head: Final[Imported] = build_msgpack_decoder(head)(self._bytes.head)
            self.entries: Final[Sequence[Entry]] = [_decode_entry(each) for each in self._bytes.operations]
        except (msgspec.DecodeError, UnicodeDecodeError) as exc:
            raise ValueError("not an import, or one of another version") from exc
        if self._bytes.format != FORMAT:
            raise ValueError("not an import of this version")
        decode = build_msgpack_decoder(operation)
        self._operation = lru_cache(_DECODED)(lambda index: decode(self._bytes.operations[index]))
        self._type = lru_cache(_TYPES)(self._decode_type)

    def operation(self, index: int) -> Operation:
        """The operation of the entry with this index."""
        found: Operation = self._operation(index)
        return found

    def document(self, schema: Schema) -> JsonSchema:
        """A schema as a document of its own, with the shared types that it refers to."""
        body: JsonSchema = dict(schema) if isinstance(schema, Mapping) else ({} if schema else {"not": {}})
        needed: dict[str, Any] = {}
        pending = list(references(body))
        while pending:
            name = pending.pop()
            if name not in needed and name in self._bytes.definitions:
                needed[name], uses = self._type(name)
                pending += uses
        if needed:
            body["$defs"] = {**body.get("$defs", {}), **dict(sorted(needed.items()))}
        return body

    def _decode_type(self, name: str) -> tuple[Any, tuple[str, ...]]:
        """A shared type, and those that it refers to itself."""
        schema = msgspec.msgpack.decode(self._bytes.definitions[name])
        return schema, tuple(dict.fromkeys(references(schema)))


def references(schema: Any) -> Iterator[str]:
    """The names of the shared types that a schema refers to itself."""
    pending = [schema]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            reference = part.get("$ref")
            if isinstance(reference, str) and reference.startswith(_REFERENCE):
                yield reference.removeprefix(_REFERENCE).partition("/")[0].replace("~1", "/").replace("~0", "~")
            pending += part.values()
        elif isinstance(part, list):
            pending += part
