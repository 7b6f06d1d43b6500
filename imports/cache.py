"""Keeps what was read of large documents in files of the user's cache, so that a daemon starts without reading them again.

A file holds data alone, no code. One that belongs to somebody else, or was made of another document, is not used. A cache that
can't be read or written costs time and nothing else.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from stat import S_ISREG
from time import time
from typing import Final

import msgspec
from msgspec import Struct

try:
    from _blake2 import blake2b  # hashlib loads OpenSSL first, which takes as long as all of this
except ImportError:
    from hashlib import blake2b

_LARGEST: Final = 256 * 1024 * 1024
"""Bytes of a file that is read."""
_PRIVATE: Final = 0o700


class Cached(Struct, frozen=True, array_like=True):
    """An import, and the digest of each document that it was made of, by its address. `made` is a Unix time."""

    made: float
    digests: dict[str, bytes]
    data: bytes


_decode: Final = msgspec.msgpack.Decoder(Cached).decode
_encode: Final = msgspec.msgpack.Encoder().encode


def digest_of(text: bytes) -> bytes:
    """What a document is recognised by."""
    return blake2b(text, digest_size=32).digest()


def read_cached(key: bytes) -> Cached | None:
    """What was kept under a key; None where there is nothing that can be used."""
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
            return _decode(file.read())
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
