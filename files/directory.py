"""What the file service needs of an open directory: the interface between the root's rules and an operating system.

A `Directory` is a capability: it reaches the names directly in it and nothing else. No method takes a path, follows a
symbolic link, or ever opens a FIFO, socket or device. Faults are `OSError`s with a fixed `errno`: ELOOP for a symbolic
link on the way, EISDIR and ENXIO for what is not a regular file, ENOTDIR for what is not a directory.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Protocol, Self, TypeAlias

import msgspec

from .types import FileKind

PathParts: TypeAlias = tuple[str, ...]
"""The names that lead from the root to an entry; empty for the root itself."""


class FileInfo(msgspec.Struct, frozen=True):
    """What a name stands for. `size` is in bytes, 0 for what is not a file; `modified` in ns since 1970 UTC."""

    kind: FileKind
    size: int
    modified: int


class Directory(Protocol):
    """One open directory. The receiver closes it; using it after `close` raises `OSError`."""

    def open_directory(self, name: str) -> Directory:
        """Open the directory `name`; `.` opens this one again."""
        ...

    def open_file(self, name: str) -> int:
        """Open the regular file `name` for reading and return its descriptor, which the caller closes."""
        ...

    def info(self, name: str) -> FileInfo:
        """Describe `name` itself: a symbolic link is described, not followed. `.` is this directory."""
        ...

    def list_names(self) -> Iterator[str]:
        """Yield every name except `.` and `..`, in no order. Bytes that are not UTF-8 come as lone surrogates."""
        ...

    def write_file(self, name: str, data: bytes, *, create: bool) -> tuple[FileInfo, bool]:
        """Make `name` a file that holds `data`, atomically. Returns the file's info and whether the file is new.

        With `create`, an existing `name` is left unchanged and `FileExistsError` raised. On any error the old file
        remains.
        """
        ...

    def close(self) -> None:
        """Release the directory. A second call does nothing."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


def is_unicode(name: str) -> bool:
    """Whether `name` can be sent: False for names with bytes that are not UTF-8."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def first_names(
    listed: Iterable[str], count: int, *, after: str | None = None, first: str | None = None
) -> tuple[list[str], int]:
    """The first `count` names, sorted, of those that sort after `after`, and at or after `first`; and how many of all
    names are not Unicode. No more than `count` names are in memory, however many are listed.
    """
    from heapq import nsmallest  # late: only listings need it

    skipped = 0

    def candidates() -> Iterator[str]:
        nonlocal skipped
        for name in listed:
            if not is_unicode(name):
                skipped += 1
            elif (after is None or name > after) and (first is None or name >= first):
                yield name

    return nsmallest(count, candidates()), skipped


def read_at(fd: int, offset: int, count: int) -> bytes:
    """Read `count` bytes of an open file from byte `offset` on; fewer only at the end of the file."""
    os.lseek(fd, offset, os.SEEK_SET)
    chunks: list[bytes] = []
    while count and (chunk := os.read(fd, count)):
        chunks.append(chunk)
        count -= len(chunk)
    return b"".join(chunks)
