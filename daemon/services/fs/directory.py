"""What the file service asks of an open directory: the seam between the root's rules and an operating system.

A `Directory` is a capability: it reaches the names directly in it and nothing else. No method takes a path, follows a
symbolic link, or ever opens a FIFO, socket or device. Faults are `OSError`s whose `errno` is a contract: ELOOP where
a symbolic link stands in the way, EISDIR and ENXIO for what is no regular file, ENOTDIR for what is no directory.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Protocol, Self

import msgspec

from .types import Kind


class Facts(msgspec.Struct, frozen=True):
    """What one name stands for: `size` in bytes (0 for what is not a file), `modified` in ns since 1970 UTC."""

    kind: Kind
    size: int
    modified: int


class Directory(Protocol):
    """One open directory. Whoever receives one closes it; using it after `close` raises `OSError`."""

    def enter(self, name: str) -> Directory:
        """Open the directory `name`; `.` opens this one again."""
        ...

    def open_file(self, name: str) -> int:
        """Open the regular file `name` for reading, and return its descriptor, which the caller closes."""
        ...

    def facts(self, name: str) -> Facts:
        """Describe `name` itself: a symbolic link is described, not followed. `.` is this directory."""
        ...

    def names(self) -> Iterator[str]:
        """Yield every name but `.` and `..`, in no order; bytes that are not UTF-8 come as lone surrogates."""
        ...

    def replace(self, name: str, data: bytes, *, create: bool) -> tuple[Facts, bool]:
        """Make `name` a file that holds `data`, at once or not at all; return its facts and whether it is new.

        With `create` an existing `name` is left alone and `FileExistsError` raised. On any error the old file stands.
        """
        ...

    def close(self) -> None:
        """Release the directory; closing twice does nothing."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


def is_text(name: str) -> bool:
    """Whether `name` can be sent: false for names that hold bytes which are not UTF-8."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def read_at(fd: int, offset: int, count: int) -> bytes:
    """Read `count` bytes from byte `offset` of an open file; fewer only where the file ends."""
    os.lseek(fd, offset, os.SEEK_SET)
    chunks: list[bytes] = []
    while count and (chunk := os.read(fd, count)):
        chunks.append(chunk)
        count -= len(chunk)
    return b"".join(chunks)
