"""Packs an import into one text of bytes: each operation and type by itself, decoded when it is asked for.

A document of some megabytes would be ten times as large as Python objects, of which a daemon needs few. The same bytes are
kept in files of the user's cache, so that a daemon starts without the document. Reads no document and calls nothing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from stat import S_ISREG
from time import time
from typing import Any, Final, Generic, TypeVar, final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from ..daemon.operations.spec import OperationKind
from ..errors.decoders import build_msgpack_decoder
from ..schemas.documents import OfferSchema
from ..version import __version__
from .model import Imported, ImportedOperation, JsonSchema, Schema

try:
    from _blake2 import blake2b  # hashlib loads OpenSSL first, which takes as long as all of this
except ImportError:
    from hashlib import blake2b

FORMAT: Final = 10
"""The version of these bytes. Increment it with every change of the structs that they hold."""

_REFERENCE: Final = "#/$defs/"
_DECODED: Final = 64
"""Operations that are kept in decoded form."""
_TYPES: Final = 512
"""Shared types that are."""

Operation = TypeVar("Operation", bound=ImportedOperation)


class Entry(Struct, frozen=True):
    """The facts of an operation that a daemon needs before the first call of it: some of its members, schemas as bytes."""

    name: str
    kind: OperationKind
    output: Raw
    errors: list[Raw]
    description: str
    idempotent: bool
    numbered: bool
    timeout: float | None | UnsetType = UNSET
    method: str = ""
    target: str = ""
    offer: OfferSchema | None = None

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
_encode_key: Final = msgspec.msgpack.Encoder(enc_hook=list).encode
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
    """Yield the names of the shared types that a schema refers to itself."""
    for part in objects_in(schema):
        reference = part.get("$ref")
        if isinstance(reference, str) and reference.startswith(_REFERENCE):
            yield reference.removeprefix(_REFERENCE).partition("/")[0].replace("~1", "/").replace("~0", "~")


def objects_in(value: Any) -> Iterator[dict[str, Any]]:  # Any: JSON
    """Yield all objects in a value, it among them."""
    pending = [value]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            yield part
            pending += part.values()
        elif isinstance(part, list | tuple):
            pending += part


# -- the user's cache ------------------------------------------------------------------------------------------
#
# Files hold data alone, no code. One that belongs to somebody else, or was made of another document, is not used. A cache that
# can't be read or written costs time and nothing else.

_LARGEST: Final = 256 * 1024 * 1024
"""Bytes of a file that is read."""
_PRIVATE: Final = 0o700


class Cached(Struct, frozen=True, array_like=True):
    """An import, and the digest of each document that it was made of, by its address. `made` is a Unix time."""

    made: float
    digests: dict[str, bytes]
    data: bytes


_decode_cached: Final = msgspec.msgpack.Decoder(Cached).decode


def digest_of(text: bytes) -> bytes:
    """Return the digest by which a document is recognised."""
    return blake2b(text, digest_size=32).digest()


def key_of(*facts: object) -> bytes:
    """The key of an import that all of this decides, beside its documents."""
    return _encode_key((__version__, *facts))


def read_cached(key: bytes) -> Cached | None:
    """Return the import that was kept under a key; None if there is none that can be used."""
    folder = _folder()
    if folder is None:
        return None
    try:
        with open(_path(folder, key), "rb", opener=_open_without_waiting) as file:
            status = os.fstat(file.fileno())
            if (
                not S_ISREG(status.st_mode)
                or status.st_size > _LARGEST
                or (hasattr(os, "geteuid") and status.st_uid != os.geteuid())
            ):
                return None
            return _decode_cached(file.read())
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def keep(key: bytes, data: bytes, digests: Mapping[str, bytes]) -> None:
    """Keep this under a key, in place of what is there."""
    folder = _folder()
    if folder is None:
        return
    with suppress(OSError):
        os.makedirs(folder, mode=_PRIVATE, exist_ok=True)
        name = os.path.join(folder, f"{os.urandom(8).hex()}.tmp")
        try:
            with open(name, "xb", opener=_open_private) as file:
                file.write(_encode(Cached(time(), dict(digests), data)))
            os.replace(name, _path(folder, key))
        except BaseException:
            with suppress(OSError):
                os.unlink(name)
            raise


def _open_without_waiting(path: str, flags: int) -> int:
    """A FIFO of that name would otherwise wait for its writer."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _path(folder: str, key: bytes) -> str:
    return os.path.join(folder, f"{blake2b(key, digest_size=16).hexdigest()}.import")


def _folder() -> str | None:
    """The folder of the cache; None where there is none."""
    home = os.path.expanduser("~")
    if home == "~":
        return None
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or os.path.join(home, "AppData", "Local")
    elif sys.platform == "darwin":
        base = os.path.join(home, "Library", "Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.join(home, ".cache")
    return os.path.join(base, "discreet", "imports") if os.path.isabs(base) else None
