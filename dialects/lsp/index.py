"""Keeps what a function makes of each file of the editor's workspace: built once, and again for files that change.

Loads with the first declaration. Files are read in worker threads; the text of an open document stands for its file.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, final

import msgspec

from ...daemon.declarations import WorkspaceFiles
from ...daemon.documents import DocumentEvent, Documents, TextDocument, path_or_none, uri_of_path
from ...daemon.logs import log
from ...daemon.operations.context import Context
from ...daemon.operations.service import DeclarationError, Service
from ...errors.decoders import decoder_for
from ...lazy import anyio
from .after_edits import run_internal
from .editor import Editor

if TYPE_CHECKING:
    from ...daemon.connection.session import ClientConnection
    from ...daemon.operations.spec import OperationSpec

T = TypeVar("T")

MAX_FILES: Final = 20_000
MAX_BYTES: Final = 256 * 1024 * 1024
"""Bytes of all files that an index is made of. What is made of them is not counted: only its author knows how large it is."""

MAX_FILE_BYTES: Final = 4 * 1024 * 1024
"""Bytes of a file that is read. Larger ones are generated, and not what users search."""

BATCH: Final = 50
"""Files between two reports of progress."""

SETTLE_SECONDS: Final = 0.2
"""How long changes are gathered before they are worked off: a checkout changes many files at once."""

SKIPPED: Final = frozenset({"node_modules", "__pycache__"})
"""Folders that are not searched, beside those whose names begin with a dot."""


@final
class WorkspaceIndex(Generic[T]):
    """What `build(document)` returns for each file of the workspace's folders that matches `pattern`, by URI.

    `pattern` is a glob pattern of LSP, relative to a folder: `**/*.md`, `docs/**/*.{md,txt}`. `build` is a plain function of an
    `lsp.TextDocument`. It runs in a worker thread, for one file at a time, and its exceptions are lines of the log. The index is
    built when the client has finished the handshake, with progress. It follows edits of open documents, changes of folders,
    and files that the client watches, where it can. Files that are too large or not UTF-8 are left out, and what comes after
    the first `max_files` or `max_bytes`; the log says so.

    Each client has an index of its own. Raises `DeclarationError` for what is no service, pattern or function.
    """

    def __init__(
        self,
        service: Service,
        pattern: str,
        build: Callable[[TextDocument], T],
        *,
        title: str = "Indexing",
        max_files: int = MAX_FILES,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        if not isinstance(service, Service) or not isinstance(pattern, str) or not callable(build):
            raise DeclarationError(
                'write lsp.WorkspaceIndex(service, "**/*.md", build), build a function of a document'
            )
        self._matches = _matcher(pattern)
        self._build = build
        self._title = title
        self._limits = max_files, max_bytes

        async def run(ctx: Context, uris: list[str] | None = None, anew: bool = False) -> None:
            await self._run(ctx, uris, anew)

        name = getattr(build, "__name__", type(build).__name__)
        method = f"{service.namespace}/$index.{name}".lstrip("/")
        service.mutation(method, visibility="internal", timeout=None, description=f"Index files by {name}.")(run)
        service.operations[-1] = msgspec.structs.replace(service.operations[-1], offer=WorkspaceFiles(pattern))
        service.late.announce()

    def entries(self, ctx: Context) -> Mapping[str, T]:
        """Return what there is now, by URI. The mapping never changes. From any thread."""
        kept: _Kept[T] | None = ctx.documents.derived.get(self)
        return {} if kept is None else kept.entries

    async def ready(self, ctx: Context) -> Mapping[str, T]:
        """Wait until all files were read once, and return `entries`."""
        kept = self._kept(ctx.documents)
        if not kept.is_ready:
            if kept.ready is None:
                kept.ready = anyio.Event()
            await kept.ready.wait()
        return kept.entries

    def _kept(self, documents: Documents) -> _Kept[T]:
        kept: _Kept[T] = documents.derived.setdefault(self, _Kept())
        return kept

    async def _run(self, ctx: Context, uris: list[str] | None, anew: bool) -> None:
        """Build the entries of these URIs anew; None for what the folders have and the index has not, or with `anew` for all."""
        kept = self._kept(ctx.documents)
        if uris is not None:
            return await self._update(
                ctx, kept, [path for uri in uris if (path := path_or_none(uri)) is not None], None
            )
        try:
            async with Editor(ctx).progress(self._title, percentage=0) as progress:
                found = await anyio.to_thread.run_sync(self._scan, ctx.documents)
                gone = kept.files.keys() - set(found)
                paths = [*gone, *(path for path in found if anew or path not in kept.files)]

                async def tell(done: int) -> None:
                    await progress.report(f"{done} of {len(paths)} files", 100 * done // len(paths))

                await self._update(ctx, kept, paths, tell)
        finally:
            kept.is_ready = True
            if kept.ready is not None:
                kept.ready.set()

    async def _update(
        self, ctx: Context, kept: _Kept[T], paths: Sequence[str], tell: Callable[[int], Any] | None
    ) -> None:
        failed = 0
        for start in range(0, len(paths), BATCH):
            batch = paths[start : start + BATCH]
            failed += await anyio.to_thread.run_sync(self._update_batch, ctx.documents, kept, batch, not failed)
            if tell is not None:
                await tell(start + len(batch))
        if failed:
            log.warning("index.failed", method=ctx.operation, files=failed)

    def _update_batch(self, documents: Documents, kept: _Kept[T], paths: Sequence[str], tells: bool) -> int:
        """Build these entries anew, in a worker thread, and return how many failed. With `tells` the log has the first."""
        opened = {path: uri for uri in documents if (path := path_or_none(uri)) is not None}
        failed = 0
        for path in paths:
            kept.drop(path)
            if not self._is_inside(documents, path):
                continue
            try:
                uri = opened.get(path) or uri_of_path(path)
            except UnicodeEncodeError:  # a name that is no text has no URI
                continue
            try:
                size = 0 if path in opened else os.stat(path).st_size
                if size > MAX_FILE_BYTES or not kept.fits(size, self._limits):
                    continue
                kept.keep(path, uri, size, self._build(documents.read(uri)))
            except (OSError, UnicodeDecodeError):
                continue  # it is gone, or no text
            except Exception:  # the boundary: `build` is the app's
                failed += 1
                if tells and failed == 1:
                    logging.getLogger(__name__).exception("a file can not be indexed")
        kept.publish()
        return failed

    def _is_inside(self, documents: Documents, path: str) -> bool:
        for folder in map(path_or_none, documents.folders):
            if folder is not None and path.startswith(folder.rstrip(os.sep) + os.sep):
                inside = os.path.relpath(path, folder).replace(os.sep, "/")
                hidden = any(part in SKIPPED or part.startswith(".") for part in inside.split("/")[:-1])
                if not hidden and self._matches(inside):
                    return True
        return False

    def _scan(self, documents: Documents) -> list[str]:
        """The paths of all files that match, without those of folders that are skipped. In a worker thread."""
        found = dict.fromkeys(
            path for folder in map(path_or_none, documents.folders) if folder for path in self._walk(folder)
        )
        if len(found) > self._limits[0]:
            log.warning("index.full", files=len(found), limit=self._limits[0])
        return [*found][: self._limits[0]]

    def _walk(self, folder: str) -> Iterator[str]:
        for parent, folders, files in os.walk(folder):
            folders[:] = sorted(name for name in folders if name not in SKIPPED and not name.startswith("."))
            for name in sorted(files):
                path = os.path.join(parent, name)
                if self._matches(os.path.relpath(path, folder).replace(os.sep, "/")):
                    yield path


@final
class _Kept(Generic[T]):
    """The index of one client. `files` has, by path, the URI, the bytes and the value. One thread at a time changes it."""

    def __init__(self) -> None:
        self.files: dict[str, tuple[str, int, T]] = {}
        self.entries: Mapping[str, T] = {}
        self.is_ready = False
        self.ready: anyio.Event | None = None
        self._size = 0
        self._told = False

    def fits(self, size: int, limits: tuple[int, int]) -> bool:
        files, most = limits
        fits = len(self.files) < files and self._size + size <= most
        if not fits and not self._told:
            self._told = True
            log.warning("index.full", files=len(self.files), limit=files)
        return fits

    def keep(self, path: str, uri: str, size: int, value: T) -> None:
        self.files[path] = uri, size, value
        self._size += size

    def drop(self, path: str) -> None:
        if (before := self.files.pop(path, None)) is not None:
            self._size -= before[1]

    def publish(self) -> None:
        self.entries = {uri: value for uri, _, value in self.files.values()}


def _matcher(pattern: str) -> Callable[[str], object]:
    """A function that tells whether a relative path matches a glob pattern of LSP. Raises `DeclarationError`."""
    regex, depth = "", 0
    for token in re.findall(r"\*\*/|\*\*|\[[^\]/]+\]|.", pattern):
        if token == "**/":
            regex += "(?:.*/)?"
        elif token == "**":
            regex += ".*"
        elif token == "*":
            regex += "[^/]*"
        elif token == "?":
            regex += "[^/]"
        elif token in "{}":
            depth += 1 if token == "{" else -1
            regex += "(?:" if token == "{" else ")"
        elif token == "," and depth:
            regex += "|"
        elif len(token) > 1:
            regex += "[^" + token[2:] if token[1] == "!" else token
        else:
            regex += re.escape(token)
    try:
        return re.compile(regex).fullmatch
    except re.error:
        raise DeclarationError(f"{pattern} is no glob pattern, such as **/*.md") from None


# What keeps it up to date, for one client.


class _Changes(msgspec.Struct):
    class Change(msgspec.Struct):
        uri: str

    changes: list[Change]


async def sleep(seconds: float) -> None:
    """Wait."""
    await anyio.sleep(seconds)


@final
class IndexUpdates:
    """Has the index behind the operation `spec` built, and updated after changes, until `close`."""

    def __init__(self, connection: ClientConnection, documents: Documents, spec: OperationSpec) -> None:
        self._connection = connection
        self._documents = documents
        self._spec = spec
        self._folders = documents.folders
        self._pending: dict[str, None] = {}
        self._all = True
        self._anew = False
        self._woken: anyio.Event | None = None
        self._scope: anyio.CancelScope | None = None
        self._closed = False
        documents.watchers.append(self._note)
        connection.host.spawn(self._go)

    def close(self) -> None:
        """Cancel what runs, and start nothing any more."""
        self._closed = True
        if self._note in self._documents.watchers:
            self._documents.watchers.remove(self._note)
        if self._scope is not None:
            self._scope.cancel()

    def take(self, params: msgspec.Raw | None) -> None:
        """Take a `workspace/didChangeWatchedFiles`, of this index or another."""
        try:
            changes = decoder_for(_Changes)(params or b"{}").changes
        except (msgspec.DecodeError, RecursionError):
            return
        for change in changes:
            if change.uri not in self._documents:
                self._note("change", change.uri)

    def _note(self, event: DocumentEvent, uri: str) -> None:
        if event in ("save", "refresh"):
            return
        if len(self._pending) < MAX_FILES:
            self._pending[uri] = None
        else:
            self._all = self._anew = True
        self._wake()

    def look_at_folders(self) -> None:
        """Take note of folders that came or went."""
        self._all = True
        self._wake()

    def _wake(self) -> None:
        if self._woken is not None:
            self._woken.set()

    async def _go(self) -> None:
        with anyio.CancelScope() as self._scope:
            while not self._closed:
                if self._all:
                    anew, self._all, self._anew = self._anew, False, False
                    if anew:
                        self._pending.clear()
                    await self._call(None, anew)
                elif self._pending:
                    uris, self._pending = [*self._pending], {}
                    await self._call(uris, False)
                else:
                    self._woken = anyio.Event()
                    await self._woken.wait()
                    await sleep(SETTLE_SECONDS)

    async def _call(self, uris: list[str] | None, anew: bool) -> None:
        await run_internal(self._connection, self._spec, {"uris": uris, "anew": anew})
