"""The types of the built-in file service: its params, results and errors. Never touches the file system.

A path in a result or an error is the caller's own text, or a name below it. Positions and sizes are in bytes unless a
field says otherwise.
"""

from __future__ import annotations

from typing import Annotated, Literal, Protocol, TypeAlias

import msgspec
from msgspec import Meta

from ..errors import OperationError

MAX_PATH_CHARS = 4096
"""PATH_MAX on Linux: other programs can't use longer paths."""

DEFAULT_READ_BYTES = 64 * 1024
MAX_READ_BYTES = 1024 * 1024
"""A byte takes at most six in JSON (`\\u0001`), so the largest reply fits a peer's frame limit of 10 MiB."""

MAX_OFFSET = 2**53 - 1
"""The largest integer that every JSON implementation represents exactly (RFC 8259 section 6)."""

DEFAULT_LIST_ENTRIES = 1000
MAX_LIST_ENTRIES = 5000
"""A name has at most 255 bytes, so 5,000 entries fit a frame of 10 MiB even if every byte has to be escaped."""

DEFAULT_WATCH_SECONDS = 0.5
MAX_WATCH_ENTRIES = 50_000
"""About 0.3 s to scan all of them, and 20 MB to remember them."""

MAX_EVENT_CHANGES = 256
"""Changes in one event of `fs/watch`: an event fits a frame of 10 MiB even with the longest paths."""

MAX_WRITE_BYTES = 8 * 1024 * 1024

DEFAULT_SEARCH_MATCHES = 100
MAX_SEARCH_MATCHES = 1000

FileKind: TypeAlias = Literal["file", "directory", "symlink", "other"]
"""`other` is a FIFO, socket or device."""

Encoding: TypeAlias = Literal["utf-8", "base64"]
WriteMode: TypeAlias = Literal["overwrite", "create"]
ChangeKind: TypeAlias = Literal["created", "modified", "deleted"]
CaseRule: TypeAlias = Literal["sensitive", "ignore"]

PathText: TypeAlias = Annotated[
    str, Meta(max_length=MAX_PATH_CHARS, description="Relative to the root, `/` between names.")
]
Offset: TypeAlias = Annotated[int, Meta(ge=0, le=MAX_OFFSET, description="First byte to read.")]
ReadLimit: TypeAlias = Annotated[int, Meta(ge=1, le=MAX_READ_BYTES, description="Most bytes to read.")]
ListLimit: TypeAlias = Annotated[int, Meta(ge=1, le=MAX_LIST_ENTRIES, description="Most entries in one answer.")]
AfterName: TypeAlias = Annotated[str, Meta(max_length=MAX_PATH_CHARS, description="Only names that sort after this.")]
SearchText: TypeAlias = Annotated[str, Meta(min_length=1, max_length=1024, description="Literal text to find.")]
Glob: TypeAlias = Annotated[
    str,
    Meta(min_length=1, max_length=256, description="`*`, `?`, `[…]` on a file's name, or on its path if it has a `/`."),
]
SearchLimit: TypeAlias = Annotated[int, Meta(ge=1, le=MAX_SEARCH_MATCHES, description="Most matches in the answer.")]


WatchInterval: TypeAlias = Annotated[
    float, Meta(ge=0.1, le=60, description="Seconds during which changes are gathered.")
]


class Cancellable(Protocol):
    """The part of a request's context that the operations need."""

    def check_cancelled(self) -> None:
        """Raise an exception, but no `OSError`, if the result is no longer wanted; else return at once."""
        ...


class Holder(Cancellable, Protocol):
    """The part of a request's context that a watch needs besides."""

    def hold_memory(self, size: int) -> None:
        """Count `size` more bytes, or fewer if it is negative. Raises `FailureError` if there is no room."""
        ...


class PathError(OperationError, code="PATH_ERROR"):
    """The base class of the errors of paths. Only its subclasses are raised."""

    path: str


class FileNotFound(PathError, code="FILE_NOT_FOUND", http_status=404):
    """The file does not exist."""


class PermissionDenied(PathError, code="PERMISSION_DENIED", http_status=403):
    """The operating system does not permit it."""


class NotAFile(PathError, code="NOT_A_FILE", http_status=400):
    """The path names something that is not a regular file."""


class NotADirectory(PathError, code="NOT_A_DIRECTORY", http_status=400):
    """The path, or a part of it, is not a directory."""


class OutsideRoot(PathError, code="OUTSIDE_ROOT", http_status=403):
    """The path leads outside the root, or through a symbolic link."""


class FileTooLarge(PathError, code="FILE_TOO_LARGE", http_status=413):
    """The file is larger than this operation handles."""

    size: int
    limit: int


class NotText(PathError, code="NOT_TEXT", http_status=415):
    """The file is not UTF-8 text."""

    offset: int


class FileExists(PathError, code="FILE_EXISTS", http_status=409):
    """The file already exists."""


class TooManyEntries(PathError, code="TOO_MANY_ENTRIES", http_status=413):
    """There are more names than can be watched."""

    limit: int


class FileContent(msgspec.Struct, frozen=True, rename="camel"):
    """A slice of a file: `content` holds the bytes from `offset` up to `nextOffset`, encoded as `encoding` says.

    `size` is that of the whole file, `modified` its last change in RFC 3339 (UTC, milliseconds). `truncated` says that
    the file continues behind the slice: read on at `nextOffset`.
    """

    path: str
    encoding: Encoding
    content: str
    offset: int
    next_offset: int
    size: int
    truncated: bool
    modified: str


class FileStat(msgspec.Struct, frozen=True):
    """The kind, size and last change of a path. `size` is in bytes, 0 unless it is a file; `modified` is RFC 3339, UTC,
    milliseconds."""

    path: str
    kind: FileKind
    size: int
    modified: str


class Entry(msgspec.Struct, frozen=True):
    """One name in a directory; `size` and `modified` as in `FileStat`."""

    name: str
    kind: FileKind
    size: int
    modified: str


class Listing(msgspec.Struct, frozen=True):
    """A page of a directory, sorted by name (by Unicode code point).

    Send `next` as `after` for the next page; it is null on the last one. `skipped` counts the names of the whole
    directory that are not UTF-8: no request could name them.
    """

    path: str
    entries: tuple[Entry, ...]
    next: str | None
    skipped: int


class Match(msgspec.Struct, frozen=True):
    """One place where the text was found.

    `path` is relative to the root; `line` and `column` count from 1, columns in Unicode code points; `offset` is the
    match's first byte in the file, ready for `fs/read`. `text` is the line without its end, or 200 characters of it
    around the match where it is longer.
    """

    path: str
    line: int
    column: int
    offset: int
    text: str


class SearchPlace(msgspec.Struct, frozen=True):
    """The place from which a search goes on. `path` is relative to the root; `offset` is in bytes, 0 unless it is a file."""

    path: PathText
    offset: Offset = 0


class SearchResult(msgspec.Struct, frozen=True):
    """The matches, sorted by path (name by name) and place.

    `truncated` says that a limit ended the search early; then `next` is where to go on: send it as `resume`. `files`
    counts the files that this request searched, `skipped` those that it did not: binary, too large, unreadable, or gone
    meanwhile.
    """

    matches: tuple[Match, ...]
    truncated: bool
    next: SearchPlace | None
    files: int
    skipped: int


class FileWritten(msgspec.Struct, frozen=True):
    """The written file. `created` says that it is new."""

    path: str
    size: int
    modified: str
    created: bool


class Change(msgspec.Struct, frozen=True):
    """A change of one name. `path` is relative to the root; `kind` is that of the file or directory, from before if it was
    deleted."""

    change: ChangeKind
    path: str
    kind: FileKind


class Changes(msgspec.Struct, frozen=True):
    """The changes since the previous event, sorted by path. A name that now has another kind is deleted first.

    The first event is empty: watching has begun, and every later change is reported.
    """

    changes: tuple[Change, ...]


PATH_ERRORS = (FileNotFound, PermissionDenied, NotADirectory, OutsideRoot)
"""The errors of `fs/list` and `fs/stat`, too."""
READ_ERRORS = (*PATH_ERRORS, NotAFile, NotText)
SEARCH_ERRORS = (*PATH_ERRORS, NotAFile, NotText, FileTooLarge)
WATCH_ERRORS = (*PATH_ERRORS, TooManyEntries)
WRITE_ERRORS = (*PATH_ERRORS, NotAFile, FileTooLarge, FileExists)
