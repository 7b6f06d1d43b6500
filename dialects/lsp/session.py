"""Runs one editor's session with a language server (LSP 3.18): the rules of single messages, the folders of the workspace, the
handshake, the server's capabilities, and its commands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, Final, final

import msgspec

from ...daemon import plugins
from ...daemon.connection.session import (
    ClientConnection,
    DaemonControl,
    add_initialize,
    add_shutdown,
    client_info,
    run_initializers,
)
from ...daemon.declarations import AfterEdits, Command, WorkspaceFiles
from ...daemon.documents import ENCODINGS, Documents, PositionEncoding, uri_of_path
from ...daemon.logs import log
from ...daemon.memory import MemoryBudget
from ...daemon.operations.context import ClientRefused, Context
from ...daemon.operations.params import InputModel
from ...daemon.operations.registry import Registry
from ...daemon.operations.request import Request
from ...daemon.operations.service import DeclarationError, Service
from ...daemon.operations.spec import Forward
from ...daemon.rpc import envelope
from ...daemon.rpc.dialect import IGNORED, Dialect, Events, Ignored
from ...daemon.rpc.envelope import Message
from ...errors.decoders import convert, decoder_for
from ...errors.exceptions import FailureError, OperationError
from ...errors.failures import DomainFailure, Failure, InvalidParams, Overloaded, Unavailable
from ...lazy import anyio
from .capabilities import Announcement, announced_to, announcement, command_of, has_capability, slips, with_patterns
from .generated.tables import RESULTS_WITH

if TYPE_CHECKING:
    from ...daemon.operations.spec import OperationSpec
    from .after_edits import EditWatcher
    from .guards import PlainResults
    from .sync import State, Steps

NOT_INITIALIZED: Final = DomainFailure("SERVER_NOT_INITIALIZED", "Server not initialized", number=-32002)
"""`ErrorCodes.ServerNotInitialized`: a request before `initialize`."""

ALREADY_INITIALIZED: Final = DomainFailure("ALREADY_INITIALIZED", "Already initialized", number=-32600)
"""A second `initialize`, which "must not be sent"."""

WATCHED_FILES: Final = "workspace/didChangeWatchedFiles"

SYNC_PREFIXES: Final = ("textDocument/did", "notebookDocument/did")


class ContentModified(OperationError, code="CONTENT_MODIFIED", number=-32801, retryable=True):
    """The content was modified while the request was handled"""


class ServerCancelled(OperationError, code="SERVER_CANCELLED", number=-32802, retryable=True):
    """The server cancelled the request"""

    retriggerRequest: bool = True  # noqa: N815 - the name on the wire, of `DiagnosticServerCancellationData`


class _PartialResult(msgspec.Struct):
    partial_result_token: str | int | None = msgspec.field(name="partialResultToken", default=None)


class _MendedCall(Request, gc=False):
    """A call that came with unpaired surrogates. Its params have U+FFFD for each; `exact` is the body that came."""

    exact: bytes = b""


_NOTHING: Final = {
    "textDocument/diagnostic": b'{"kind":"full","items":[]}',
    "textDocument/semanticTokens/full": b'{"data":[]}',
    "textDocument/semanticTokens/full/delta": b'{"edits":[]}',
    "textDocument/semanticTokens/range": b'{"data":[]}',
    "workspace/diagnostic": b'{"items":[]}',
}
"""The results in which nothing is, of methods whose results are no lists."""


class PartialResults(Events):
    """Parts of a result on their way: at once where the client asked for it, else all of them as one result.

    Parts are lists, or structs with a list or an object of parts in them.
    """

    def __init__(self, call: Request, memory: MemoryBudget) -> None:
        super().__init__(call.id or envelope.NULL_ID)
        self._rendering = call.rendering
        self._nothing = _NOTHING.get(call.method, b"[]")
        try:
            self._token = decoder_for(_PartialResult)(call.params or b"{}").partial_result_token
        except msgspec.DecodeError:
            self._token = None
        self._memory = memory
        self._kept: list[bytes] = []
        self._size = 0

    def encode(self, number: int, value: bytes) -> bytes | None:
        if self._token is not None:
            shown = value if self._rendering is None else self._rendering.result(value)
            params = {"token": self._token, "value": msgspec.Raw(shown)}
            return envelope.encode_notification("$/progress", params)
        self._size += len(value)
        if not self._memory.fits(self._size):
            raise FailureError(Overloaded())
        self._kept.append(value)
        return None

    def result(self, completed: bytes) -> bytes:
        if not self._kept:
            return self._nothing
        if self._nothing == b"[]":
            return _joined(self._kept)
        members: dict[str, list[bytes]] = {}
        for part in self._kept:
            for name, value in decoder_for(dict[str, msgspec.Raw])(part).items():
                members.setdefault(name, []).append(bytes(value))
        return msgspec.json.encode({name: msgspec.Raw(_joined(values)) for name, values in members.items()})


def _joined(values: list[bytes]) -> bytes:
    """One list of these lists, or one object of these objects; the last of other values. All are JSON texts."""
    begin, end = values[-1].strip()[:1], values[-1].strip()[-1:]
    if begin not in (b"[", b"{"):
        return values[-1]
    items = (value.strip()[1:-1] for value in values)
    return b"%b%b%b" % (begin, b",".join(item for item in items if item.strip()), end)


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

    def __init__(
        self,
        documents: Documents,
        declared: frozenset[str],
        memory: MemoryBudget,
        on_initialized: Callable[[], None],
        on_progress_cancelled: Callable[[str | int], None],
        on_steps: Callable[[], None],
        on_applied: Callable[[Request], None],
    ) -> None:
        self._documents = documents
        self.declared = declared
        self._memory = memory
        self._on_initialized = on_initialized
        self._on_progress_cancelled = on_progress_cancelled
        self._on_steps = on_steps
        self._on_applied = on_applied
        self._changing: Request | None = None
        self._steps: Steps | None = None
        self.on_close: Callable[[], None] = lambda: None
        self.on_workspace: Callable[[Request], None] | None = None
        """What is called with notifications of folders that changed, and of files that the client watches."""
        self._held = 0
        self._hello = b""
        self.state: State = "new"
        self.plain_results: Mapping[str, PlainResults] = {}
        """Writers of the results that this client may not read whole, by their methods."""

    def with_trace(self, params: object, headers: Mapping[str, str]) -> tuple[object, Mapping[str, str]]:
        return params, {}  # there is no place for it

    def receive(self, call: Request) -> Failure | Ignored | None:
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
        if call.method in self.plain_results:
            call.rendering = self.plain_results[call.method]
        return self._take_notification(call) if call.id is None else None

    def _out_of_turn(self, method: str) -> Failure | None:
        if method == "exit":
            return None
        if self.state == "shutdown":
            return Unavailable()
        if method == "initialize":
            return None if self.state == "new" else ALREADY_INITIALIZED
        return None if self.state == "initialized" else NOT_INITIALIZED

    def _take_notification(self, call: Request) -> Ignored | None:
        method = call.method
        if method.startswith(SYNC_PREFIXES):
            if call is not self._changing and self._synchronise(call):
                return IGNORED  # until it is applied
            self._changing = None
        elif method == "initialized":
            self._on_initialized()
        elif method == "workspace/didChangeWorkspaceFolders":
            change_workspace(self._documents, call.params)
            if self.on_workspace is not None:
                self.on_workspace(call)
        elif method == WATCHED_FILES and self.on_workspace is not None:
            self.on_workspace(call)
        elif method == "window/workDoneProgress/cancel":
            try:
                self._on_progress_cancelled(decoder_for(_ProgressCancel)(call.params or b"{}").token)
            except msgspec.DecodeError:
                pass
        elif not method.startswith("$/"):
            return None
        return None if method in self.declared or method == "$/setTrace" else IGNORED

    def _synchronise(self, call: Request) -> bool:
        """Apply a notification, or the first part of it; True if there is more."""
        from .sync import SYNC_METHODS, synchronise, tell_saved  # late: nothing is open before the handshake

        if call.method not in SYNC_METHODS:
            if call.method in ("textDocument/didSave", "notebookDocument/didSave") and self._documents.watchers:
                tell_saved(self._documents, call.params)
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

    def _step(self, call: Request, steps: Steps) -> bool:
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
        if isinstance(message, Request):
            return _MendedCall(message.method, message.id, message.params, message.metadata, size=len(body), exact=body)
        return message

    def encode_failure(self, call_id: bytes, failure: Failure, method: str = "") -> bytes:
        if self.state == "initializing" and call_id == self._hello:  # the client may try again
            self.state = "new"
        if isinstance(failure, DomainFailure) and failure.number is not None and failure.details is not None:
            error = {"code": failure.number, "message": failure.message, "data": failure.details}
            return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (call_id, msgspec.json.encode(error))
        return super().encode_failure(call_id, failure, method)

    def events_of(self, call: Request) -> Events:
        return PartialResults(call, self._memory)


class _ProgressCancel(msgspec.Struct):
    token: str | int


# The folders of a client's workspace, as it tells of them. What is of another type is left out.


MAX_FOLDER_BYTES: Final = 256 * 1024
"""Bytes that the folders of a workspace may take, as text. They are kept as long as the client is there."""


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


# The handshake, and what is announced.


VERSION: Final = "3.18"
REGISTER_SECONDS: Final = 30.0
"""How long the client has to answer a registration."""


class _ExecuteCommandParams(msgspec.Struct, rename="camel"):
    command: str
    arguments: msgspec.Raw = msgspec.Raw(b"[]")
    work_done_token: str | int | None = None


class _General(msgspec.Struct, rename="camel"):
    position_encodings: list[str] | None = None


class _Capabilities(msgspec.Struct):
    general: _General | None = None


class _InitializeParams(msgspec.Struct, rename="camel"):
    """The params of `initialize` that the server itself needs. Nothing else is checked: editors send what they like."""

    process_id: int | None = None
    capabilities: _Capabilities | None = None


@final
class LspSession:
    """The session of one client."""

    def __init__(self, connection: ClientConnection, control: DaemonControl, saved: bytes = b"") -> None:
        self._connection = connection
        self._control = control
        specs = connection.host.catalogue.operations
        self._announcement: Announcement = announcement(specs)
        for line in slips(spec.name for spec in specs if spec.name.startswith(plugins.FOUND_ONLY_IN["lsp"])):
            log.warning("method.unknown", hint=line)
        self._commands = {command_of(spec): spec for spec in specs if isinstance(spec.offer, Command)}
        self.documents: Final = Documents()
        self.dialect: Final = LspDialect(
            self.documents,
            frozenset(spec.name for spec in specs),
            connection.host.memory,
            self._on_initialized,
            lambda token: connection.context_backend.progress_cancels.get(token, _nothing)(),
            lambda: connection.host.spawn(self._apply_steps),
            connection.take_again,
        )
        self._registered: dict[str, bytes] | None = None
        self._saved = saved
        watchers = connection.host.operation_watchers
        watchers.append(self._take_changes)
        self.dialect.on_close = lambda: watchers.remove(self._take_changes)
        self._edits: EditWatcher | None = None
        self._watch_edits(specs)

    def _watch_edits(self, specs: Sequence[OperationSpec]) -> None:
        """Have the functions run that the services declare for after edits."""
        found = [spec for spec in specs if isinstance(spec.offer, AfterEdits)]
        if self._edits is not None:
            self._edits.specs = found
        elif found:
            from .after_edits import EditWatcher  # late: what declares one has loaded it

            self._edits = EditWatcher(
                self._connection, self.documents, found, lambda: self.dialect.state == "initialized"
            )
            self.dialect.on_close = _both(self._edits.close, self.dialect.on_close)

    def _begin_indexes(self) -> None:
        """Have the indexes built and kept up to date that the services declare."""
        specs = [spec for spec in self._connection.host.catalogue.operations if isinstance(spec.offer, WorkspaceFiles)]
        if not specs:
            return
        from .index import IndexUpdates  # late: what declares one has loaded it

        indexes = [IndexUpdates(self._connection, self.documents, spec) for spec in specs]

        def tell(call: Request) -> None:
            for index in indexes:
                if call.method == WATCHED_FILES:
                    index.take(call.params)
                else:
                    index.look_at_folders()

        self.dialect.on_workspace = tell
        for index in indexes:
            self.dialect.on_close = _both(index.close, self.dialect.on_close)

    def registry(self) -> Registry:
        if self._saved:
            self._restore(self._saved)
        service = Service()
        self._add_initialize(service)

        def shutdown() -> None:
            """Take no more requests. What runs goes on; `exit` or the end of input ends the server."""

        add_shutdown(service, self._connection.host.catalogue.shutdowns, shutdown)

        @service.notification("exit", inline=True)
        def leave() -> None:
            """End the server: with status 0 after `shutdown`, else 1."""
            self._control.exit(failed=self.dialect.state != "shutdown")

        @service.notification("$/setTrace", inline=True)
        def set_trace(params: dict[str, Any], /) -> None:
            """Take note of how much the client wants to be told."""

        @service.mutation("workspace/executeCommand", inline=True)
        def execute_command(params: _ExecuteCommandParams, /) -> Any:
            """Run a command of the services."""
            spec = self._commands.get(params.command)
            if spec is None:
                raise FailureError(InvalidParams("command", "one of", "string", tuple(self._commands)))
            given = _with_rest(params.arguments, spec.input)
            return Forward(spec.name, given, None, prefix="arguments", progress_token=params.work_done_token)

        needed = msgspec.structs.replace
        service.operations = [
            needed(spec, immediate="always")
            if spec.name in ("shutdown", "exit") and spec.mode == "inline"
            else (needed(spec, mode="forward") if spec.name == "workspace/executeCommand" else spec)
            for spec in service.operations
        ]
        return Registry([service])

    def save(self) -> bytes:
        from .sync import write  # late: only a reload asks

        return write(self._connection.context_backend.client, self.documents, self.dialect.state, self._registered)

    # -- the handshake -----------------------------------------------------------------------------------------

    def _add_initialize(self, service: Service) -> None:
        hooks = self._connection.host.catalogue.initializers

        def initialize(params: dict[str, Any] | list[Any] | None, /) -> dict[str, Any]:
            """Say what the server can do."""
            self._meet(params)
            return self._result({})

        async def initialize_after_hooks(ctx: Context, params: dict[str, Any] | list[Any] | None, /) -> dict[str, Any]:
            return self._result(await run_initializers(ctx, hooks, self._meet(params)))

        add_initialize(service, hooks, initialize, initialize_after_hooks)

    def _meet(self, given: dict[str, Any] | list[Any] | None) -> dict[str, Any]:
        params = _read_initialize(given)
        pid = params.get("processId")
        if pid is not None:
            self._control.watch_client(int(pid))
        client = client_info(params, VERSION)
        self._connection.set_client_info(client)
        self._write_plainly()
        self.documents.encoding = chosen_encoding(client.capabilities)
        set_workspace(self.documents, params)
        return params

    def _result(self, added: dict[str, Any]) -> dict[str, Any]:
        self.dialect.state = "initialized"
        capabilities = {
            **announced_to(self._connection.context_backend.client.capabilities, self._announcement.capabilities),
            **self._connection.host.catalogue.announced_capabilities(),
            **added,
            "positionEncoding": self.documents.encoding,
        }
        return {"capabilities": capabilities, "serverInfo": self._connection.host.server}

    def _take_changes(self) -> None:
        """Operations were declared while they are served: the answer to `initialize` tells of those that come before it."""
        specs = self._connection.host.catalogue.operations
        try:
            self._announcement = announcement(specs)
        except DeclarationError as exc:
            log.error("lsp.capabilities_unchanged", reason=str(exc))
            return
        self._commands = {command_of(spec): spec for spec in specs if isinstance(spec.offer, Command)}
        self.dialect.declared = frozenset(spec.name for spec in specs)
        self._write_plainly()
        self._watch_edits(specs)
        if self._registered is not None:
            self._register(self._registered)

    def _write_plainly(self) -> None:
        """Have results written so that this client can read them."""
        methods = self.dialect.declared.intersection(chain.from_iterable(RESULTS_WITH.values()))
        if methods:
            from .guards import plain_results  # late: many servers have no such results

            self.dialect.plain_results = plain_results(methods, self._connection.context_backend.client.capabilities)

    async def _apply_steps(self) -> None:
        while self.dialect.busy:
            await anyio.lowlevel.checkpoint()
            if self.dialect.busy:
                self.dialect.advance()

    def _on_initialized(self) -> None:
        if self._registered is None:
            self._register({})
            self._begin_indexes()

    def _register(self, before: dict[str, bytes]) -> None:
        """Register what has no server capability, where the client can. `before` is what a program before this one did."""
        can = self._connection.context_backend.client.capabilities
        now = {
            one.method: msgspec.json.encode(with_patterns(can, one.options))
            for one in self._announcement.registrations
            if has_capability(can, one.client_capability)
        }
        if has_capability(can, "workspace.didChangeWatchedFiles.dynamicRegistration"):
            for spec in self._connection.host.catalogue.operations:
                if isinstance(spec.offer, WorkspaceFiles):
                    watched = {"watchers": [{"globPattern": spec.offer.pattern}]}
                    now[f"{WATCHED_FILES}#{spec.name}"] = msgspec.json.encode(watched)
        self._registered = now
        gone = [{"id": name, "method": name.partition("#")[0]} for name in before if before[name] != now.get(name)]
        new = [
            {"id": name, "method": name.partition("#")[0], "registerOptions": msgspec.Raw(options)}
            for name, options in now.items()
            if before.get(name) != options
        ]

        async def ask() -> None:
            if gone:
                await self._ask("client/unregisterCapability", {"unregisterations": gone}, gone)  # LSP's own spelling
            if new:
                await self._ask("client/registerCapability", {"registrations": new}, new)

        if gone or new:
            self._connection.host.spawn(ask)

    async def _ask(self, method: str, params: dict[str, Any], about: list[dict[str, Any]]) -> None:
        try:
            await self._connection.context_backend.ask(method, params, REGISTER_SECONDS)
        except (ClientRefused, TimeoutError) as exc:
            log.warning("registration.refused", methods=[one["method"] for one in about], error=str(exc))

    def _restore(self, saved: bytes) -> None:
        """Go on where the program before this one stopped. What the server announces may have changed: it is registered."""
        from .sync import read  # late: most sessions begin anew

        last = read(saved)
        info = {"clientInfo": {"name": last.name, "version": last.version}, "capabilities": last.capabilities}
        self._connection.set_client_info(client_info(info, VERSION))
        self._write_plainly()
        last.restore(self.documents)
        self.dialect.state = "new" if last.state == "initializing" else last.state
        self.dialect.count()
        if last.registered is not None:
            self._register(last.registered)
            self._begin_indexes()


def _with_rest(arguments: msgspec.Raw, model: InputModel) -> msgspec.Raw:
    """The arguments of a command, with those of its `*args` as one list."""
    if not model.rest:
        return arguments
    try:
        given = decoder_for(list[msgspec.Raw])(arguments)
    except msgspec.DecodeError:
        return arguments  # the command's input says what is wrong
    before = model.names.index(model.rest)
    rest = [msgspec.Raw(msgspec.json.encode(given[before:]))] if len(given) > before else []
    return msgspec.Raw(msgspec.json.encode([*given[:before], *rest]))


def _nothing() -> None: ...


def _both(first: Callable[[], None], second: Callable[[], None]) -> Callable[[], None]:
    def call() -> None:
        first()
        second()

    return call


def _read_initialize(given: dict[str, Any] | list[Any] | None) -> dict[str, Any]:
    """The params of `initialize`. An empty array counts as an empty object, since that is how clients in Lua write one.

    Raises `FailureError(InvalidParams)`.
    """
    params = given or {}
    if isinstance(params, dict):
        capabilities = params.get("capabilities")
        if isinstance(capabilities, dict):
            params["capabilities"] = {name: {} if value == [] else value for name, value in capabilities.items()}
        elif capabilities == []:
            params["capabilities"] = {}
    try:
        convert(params, _InitializeParams)
    except msgspec.ValidationError:
        from ...daemon.operations.input_errors import find_input_error  # late: most clients know how to say hello

        raise FailureError(find_input_error(_InitializeParams, msgspec.json.encode(params))) from None
    assert isinstance(params, dict)
    return params


def chosen_encoding(capabilities: Mapping[str, Any]) -> PositionEncoding:
    """The first encoding of positions that the client names and we know; LSP's own default where it names none."""
    general = capabilities.get("general")
    for encoding in (general.get("positionEncodings") if isinstance(general, Mapping) else None) or ():
        if encoding in ENCODINGS:
            return encoding  # type: ignore[no-any-return]
    return "utf-16"
