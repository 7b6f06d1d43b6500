"""Builds what msgspec needs to know of a type, in one thread at a time. The only place that does so after import.

msgspec reads a type at its first use and keeps what it found on the class. While one thread does that, another one finds
it half done, and the process crashes (msgspec 0.18 to 0.22). Decoders made by a module at its import need no lock: no
other thread has the types yet. Never decodes anything itself while it holds the lock.
"""

from __future__ import annotations

import sys
from _thread import RLock  # what annotations are made of may run code that comes here again
from collections.abc import Callable
from typing import Any, Final, TypeVar, final, overload  # Any: types and values pass through unread

import msgspec

# JSON Schemas that another program has written, where a Python type would stand. Checks no value.


@final
class ExternalSchema:
    """A schema as a document of its own: no reference leads out of it, and named types are in its `$defs`. `load` is called for
    each reading, so nothing is kept of a large one.

    It stands in the place of a type: `decoders` takes it for a type with any values, and schemas of the type are the given one.
    """

    __slots__ = ("load",)

    def __init__(self, load: Callable[[], dict[str, Any]]) -> None:
        self.load: Final = load


T = TypeVar("T")

MAX_CACHED: Final = 256
"""Types whose decoders are kept: more than a program writes, and a bound for one that makes types as it runs."""

DECODE_ERRORS: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, TypeError)
"""The exceptions by which msgspec refuses a JSON text: `RecursionError` is for values nested too deeply, `TypeError` for set
items that can't be hashed. Their messages quote keys and values of the caller: never read them, pass them on or chain them."""

SURE_LEVELS: Final = 500
"""Levels of nesting that msgspec reads on every call stack of ours: about half of Python's default recursion limit."""

_lock: Final = RLock()
_decoders: Final[dict[Any, Callable[[Any], Any]]] = {}


def build_decoder(tp: Any) -> Callable[[Any], Any]:
    """A new `decode` function for JSON texts of this type. Raises what `msgspec.json.Decoder` raises."""
    with _lock:
        return msgspec.json.Decoder(_known(tp)).decode


def build_msgpack_decoder(tp: Any) -> Callable[[Any], Any]:
    """Build a decoder for MessagePack, as `build_decoder` does for JSON."""
    with _lock:
        return msgspec.msgpack.Decoder(tp).decode


@overload
def decoder_for(tp: type[T]) -> Callable[[Any], T]: ...


@overload
def decoder_for(tp: Any) -> Callable[[Any], Any]: ...


def decoder_for(tp: Any) -> Callable[[Any], Any]:
    """The `decode` function for JSON texts of this type, built at the first call. Raises as `build_decoder` does."""
    tp = _known(tp)
    try:
        found = _decoders.get(tp)
    except TypeError:  # a type that can't be hashed, for example one with a list among its annotations
        return build_decoder(tp)
    if found is None:
        with _lock:
            found = build_decoder(tp)
            while len(_decoders) >= MAX_CACHED:
                del _decoders[next(iter(_decoders))]
            _decoders[tp] = found
    return found


def convert(value: object, tp: Any) -> Any:
    """`msgspec.convert`."""
    decoder_for(tp)
    return msgspec.convert(value, _known(tp))


def type_info(tp: Any) -> msgspec.inspect.Type:
    """`msgspec.inspect.type_info`."""
    from msgspec import inspect  # late: not every process needs it

    with _lock:
        return inspect.type_info(_known(tp))


def _known(tp: Any) -> Any:
    """Return the stand-in for a type that msgspec does not know."""
    return Any if isinstance(tp, ExternalSchema) else tp


def address_space_limit() -> int | None:
    """The limit of the process's address space in bytes (`ulimit -v`); None where there is none."""
    if sys.platform == "win32":
        return None
    import resource  # not on Windows

    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def json_encoder() -> Callable[[object], bytes]:
    """The `encode` of a new encoder. Under a limit one that raises `MemoryError` where a result has no room.

    msgspec's own crashes the process there: it writes on where its buffer could not grow. Into a `bytearray` it does not.
    """
    encoder = msgspec.json.Encoder()
    if address_space_limit() is None:
        return encoder.encode

    def encode(value: object) -> bytes:
        text = bytearray()
        encoder.encode_into(value, text)
        return bytes(text)

    return encode
