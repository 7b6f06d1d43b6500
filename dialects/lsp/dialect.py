"""LSP's rules for single messages: what is allowed when, the numbers of errors, partial results; and
the folders of the workspace. LSP 3.17.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, final

import msgspec

from ...daemon.documents.store import Documents, uri_of_path
from ...daemon.logs import log
from ...daemon.memory import MemoryBudget
from ...daemon.rpc import envelope
from ...daemon.rpc.dialect import IGNORED, Dialect, Events, Ignored
from ...daemon.rpc.envelope import Call, Message
from ...errors.decoders import decoder_for
from ...errors.exceptions import FailureError, OperationError
from ...errors.failures import DomainFailure, Failure, Overloaded, Unavailable

if TYPE_CHECKING:
    from .sync import State, Steps

NOT_INITIALIZED: Final = DomainFailure("SERVER_NOT_INITIALIZED", "Server not initialized", number=-32002)
"""`ErrorCodes.ServerNotInitialized`: a request before `initialize`."""

ALREADY_INITIALIZED: Final = DomainFailure("ALREADY_INITIALIZED", "Already initialized", number=-32600)
"""A second `initialize`, which "must not be sent"."""

SYNC_PREFIXES: Final = ("textDocument/did", "notebookDocument/did")


class ContentModified(OperationError, code="CONTENT_MODIFIED", number=-32801, retryable=True):
    """The content was modified while the request was handled"""


class ServerCancelled(OperationError, code="SERVER_CANCELLED", number=-32802, retryable=True):
    """The server cancelled the request"""

    retriggerRequest: bool = True  # noqa: N815 - the name on the wire, of `DiagnosticServerCancellationData`


class _PartialResult(msgspec.Struct):
    partial_result_token: str | int | None = msgspec.field(name="partialResultToken", default=None)


class _MendedCall(Call, gc=False):
    """A call that came with unpaired surrogates. Its params have U+FFFD for each; `exact` is the body that came."""

    exact: bytes = b""


class PartialResults(Events):
    """Lists of results on their way: at once where the client asked for it, else all of them as one result."""

    def __init__(self, call: Call, memory: MemoryBudget) -> None:
        super().__init__(call.id or envelope.NULL_ID)
        try:
            self._token = decoder_for(_PartialResult)(call.params or b"{}").partial_result_token
        except msgspec.DecodeError:
            self._token = None
        self._memory = memory
        self._kept: list[bytes] = []
        self._size = 0

    def encode(self, number: int, value: bytes) -> bytes | None:
        if self._token is not None:
            params = {"token": self._token, "value": msgspec.Raw(value)}
            return envelope.encode_notification("$/progress", params)
        self._size += len(value)
        if not self._memory.fits(self._size):
            raise FailureError(Overloaded())
        self._kept.append(value)
        return None

    def result(self, completed: bytes) -> bytes:
        items = (part.strip()[1:-1] for part in self._kept)
        return b"[%b]" % b",".join(item for item in items if item.strip())


@final
class LspDialect(Dialect):
    """One per client, since its rules depend on how far the handshake is. `declared` are the methods of the services.

    A notification with many changes is applied in steps: `on_steps()` is called at the first, and `advance()` makes the next
    one; `busy` says that there are more. Until then nothing more should be read. `on_applied(call)` is called with the
    notification at the end, and hands it in again.
    `on_initialized()` is called when the client has finished the handshake, `on_progress_cancelled(token)` when it cancels
    the progress that it sees.
    """

    name: ClassVar[str] = "lsp"
    mends_surrogates: ClassVar[bool] = True
    trace_place: ClassVar[Literal["serviceParams", "_meta"] | None] = None

    def __init__(
        self,
        documents: Documents,
        declared: frozenset[str],
        memory: MemoryBudget,
        on_initialized: Callable[[], None],
        on_progress_cancelled: Callable[[str | int], None],
        on_steps: Callable[[], None],
        on_applied: Callable[[Call], None],
    ) -> None:
        self._documents = documents
        self.declared = declared
        self._memory = memory
        self._on_initialized = on_initialized
        self._on_progress_cancelled = on_progress_cancelled
        self._on_steps = on_steps
        self._on_applied = on_applied
        self._changing: Call | None = None
        self._steps: Steps | None = None
        self.on_close: Callable[[], None] = lambda: None
        self._held = 0
        self._hello = b""
        self.state: State = "new"

    def receive(self, call: Call) -> Failure | Ignored | None:
        while self.busy:  # read all the same, at the end
            self.advance()
        refusal = self._out_of_turn(call.method)
        if refusal is not None:
            return IGNORED if call.id is None else refusal
        if call.method == "initialize":
            if call.id is None:
                return IGNORED
            self.state, self._hello = "initializing", call.id  # until the handler has a result
        elif call.method == "shutdown":
            self.state = "shutdown"
        return self._take_notification(call) if call.id is None else None

    def _out_of_turn(self, method: str) -> Failure | None:
        if method == "exit":
            return None
        if self.state == "shutdown":
            return Unavailable()
        if method == "initialize":
            return None if self.state == "new" else ALREADY_INITIALIZED
        return None if self.state == "initialized" else NOT_INITIALIZED

    def _take_notification(self, call: Call) -> Ignored | None:
        method = call.method
        if method.startswith(SYNC_PREFIXES):
            if call is not self._changing and self._synchronise(call):
                return IGNORED  # until it is applied
            self._changing = None
        elif method == "initialized":
            self._on_initialized()
        elif method == "workspace/didChangeWorkspaceFolders":
            change_workspace(self._documents, call.params)
        elif method == "window/workDoneProgress/cancel":
            try:
                self._on_progress_cancelled(decoder_for(_ProgressCancel)(call.params or b"{}").token)
            except msgspec.DecodeError:
                pass
        elif not method.startswith("$/"):
            return None
        return None if method in self.declared or method == "$/setTrace" else IGNORED

    def _synchronise(self, call: Call) -> bool:
        """Apply a notification, or the first part of it; True if there is more."""
        from .sync import SYNC_METHODS, synchronise  # late: nothing is open before the handshake

        if call.method not in SYNC_METHODS:
            return False
        exact = call.exact if isinstance(call, _MendedCall) else b""
        self._changing, self._steps = call, synchronise(self._documents, call.method, call.params, exact)
        self.busy = not self._step(call, self._steps)
        if self.busy:
            self._on_steps()
        return self.busy

    def advance(self) -> None:
        """Apply some more of a notification with many changes. Only while `busy`."""
        assert self._changing is not None
        assert self._steps is not None
        if self._step(self._changing, self._steps):
            self.busy = False
            self._on_applied(self._changing)

    def _step(self, call: Call, steps: Steps) -> bool:
        """Make one step; True if it was the last. A document that can't be kept as the client has it now is closed: rather none
        than an old one.
        """
        from .sync import discard, named_in

        documents = self._documents
        try:
            next(steps)
            return False
        except StopIteration as end:
            touched: list[str] = end.value
        except (msgspec.DecodeError, ValueError, RecursionError, MemoryError):
            touched = named_in(call.params)
            log.warning("document.unreadable_change", method=call.method)
            discard(documents, touched)
        more = documents.size - self._held
        if more > 0 and not self._memory.fits(more):
            log.error("document.refused", method=call.method, size=more)
            discard(documents, touched)
        self.count()
        return True

    def count(self) -> None:
        """Count what the open documents take now."""
        size = self._documents.size
        self._memory.add("documents", size - self._held)
        self._held = size

    def hand_over(self) -> None:
        while self.busy:
            self.advance()

    def close(self) -> None:
        self.on_close()
        self._memory.add("documents", -self._held)
        self._held = 0

    def read_again(self, body: bytes) -> Message | None:
        """Editors that count in UTF-16 send half a surrogate pair when the user or a tool changes the other half."""
        message = super().read_again(body)
        if isinstance(message, Call):
            return _MendedCall(message.method, message.id, message.params, message.metadata, size=len(body), exact=body)
        return message

    def encode_failure(self, call_id: bytes, failure: Failure, method: str = "") -> bytes:
        if self.state == "initializing" and call_id == self._hello:  # the client may try again
            self.state = "new"
        if isinstance(failure, DomainFailure) and failure.number is not None and failure.details is not None:
            error = {"code": failure.number, "message": failure.message, "data": failure.details}
            return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (call_id, msgspec.json.encode(error))
        return super().encode_failure(call_id, failure, method)

    def events_of(self, call: Call) -> Events:
        return PartialResults(call, self._memory)


class _ProgressCancel(msgspec.Struct):
    token: str | int


# The folders of a client's workspace, as it tells of them. What is of another type is left out.


MAX_FOLDER_BYTES: Final = 256 * 1024
"""What the folders of a workspace may take, as text. They are kept as long as the client is there."""


class _Changed(msgspec.Struct):
    class Event(msgspec.Struct):
        added: list[Any] = []  # Any: JSON, here and below
        removed: list[Any] = []

    event: Event


def set_workspace(documents: Documents, params: dict[str, Any]) -> None:
    """Keep what `initialize` says of the workspace. A client that knows one root alone has it as its only folder."""
    root, path = params.get("rootUri"), params.get("rootPath")
    if not isinstance(root, str) and isinstance(path, str) and path:
        root = uri_of_path(path)
    folders = _read(params.get("workspaceFolders"))
    if isinstance(root, str) and len(root) <= MAX_FOLDER_BYTES:
        folders = folders or {root: root.rstrip("/").rpartition("/")[2]}
    else:
        root = None
    _keep(documents, folders)
    documents.root_uri = root or next(iter(documents.folders), None)


def change_workspace(documents: Documents, params: msgspec.Raw | None) -> None:
    """Apply one `workspace/didChangeWorkspaceFolders`."""
    try:
        event = decoder_for(_Changed)(params or b"{}").event
    except (msgspec.DecodeError, RecursionError):
        log.warning("workspace.unreadable_change")
        return
    removed = _read(event.removed)
    kept = {uri: name for uri, name in documents.folders.items() if uri not in removed}
    _keep(documents, kept | _read(event.added))


def _keep(documents: Documents, folders: dict[str, str]) -> None:
    if sum(len(uri) + len(name) for uri, name in folders.items()) > MAX_FOLDER_BYTES:
        log.warning("workspace.too_many_folders", folders=len(folders))
        return
    documents.folders = folders  # a new one: threads may read the old one


def _read(folders: Any) -> dict[str, str]:
    found: dict[str, str] = {}
    for folder in folders if isinstance(folders, list) else ():
        if isinstance(folder, dict) and isinstance(uri := folder.get("uri"), str):
            found[uri] = name if isinstance(name := folder.get("name"), str) else ""
    return found
