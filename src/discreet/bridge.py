"""Passes the messages of MCP's clients on to another server and back, as they are: ids and progress tokens alone are replaced,
since two clients may use the same.

A `Bridge` is a dialect: the daemon and the gateway serve its sessions in the place of their own, over stdio and by HTTP. What it
speaks to is a child process, or a server behind a URL.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from itertools import count, islice
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast, final

import anyio
import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.structs import replace

from .change_signal import ChangeSignal
from .client.connection import CLOSED, INITIALIZE, Connection
from .client.errors import ConnectionFailed, ConnectionLoss, InvalidReply, RemoteError
from .client.messages import UNKNOWN_ID, OutgoingRequest, ServerNotification, ServerRequest, own_id
from .client.pending import PendingCall
from .client.task_group import background_tasks
from .daemon.connection.notices import ClientContextBackend
from .daemon.logs import RepeatedWarning, log
from .daemon.operations.context import ClientRefused
from .daemon.operations.registry import Registry
from .daemon.operations.request import Request
from .daemon.operations.service import Service
from .daemon.rpc.dialect import IGNORED, Ignored
from .daemon.rpc.envelope import NULL_ID, encode_notification
from .dialects.mcp.dialect import SUBSCRIPTION_ID, McpMessages
from .dialects.mcp.revision import PROTOCOL_ERROR, RESERVED_NUMBERS, meta_of
from .errors.codes import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR
from .errors.decoders import DECODE_ERRORS, decoder_for
from .errors.exceptions import FailureError
from .errors.failures import (
    Cancelled,
    DomainFailure,
    Failure,
    Internal,
    InvalidParams,
    InvalidRequest,
    MethodNotFound,
    Unavailable,
)
from .errors.printable import printable
from .errors.redaction import scrub
from .errors.wire import encode_error_response
from .gateway.mcp.headers import NAMING
from .imports.mcp.model import Agreed
from .imports.mcp.reading import mirrored_params
from .imports.mcp.server_messages import ServerMessages
from .imports.mcp.session import LEGACY, encoded, linked
from .imports.mcp.upstream import mirrored_values
from .imports.model import ImportFailed
from .imports.targets import Command, require
from .imports.tokens import bearer_of

if TYPE_CHECKING:
    from .client.incoming import Handlers
    from .daemon.connection.session import ClientConnection, DaemonControl
    from .daemon.host import Host
    from .daemon.operations.spec import OperationSpec
    from .gateway.page.endpoint import OutputCheck
    from .imports.mcp.http import McpHttp
    from .imports.targets import Target

HeadersFor: TypeAlias = Callable[[str], Awaitable[Mapping[str, str]]]
"""Gives the headers of a request for the caller with this token, which is empty for none."""

MAX_CALLS: Final = 4096
"""Requests of all clients that may wait for their answers at a time."""

MAX_TASKS: Final = 1024
"""Tasks of one server whose progress is passed on."""

INITIALIZED: Final = "notifications/initialized"
_CANCELLED: Final = "notifications/cancelled"
_LISTEN: Final = "subscriptions/listen"

_TOKEN: Final = "progressToken"
_MESSAGE: Final = "notifications/message"
"""It belongs to a request, but does not say to which."""

_STATUSES: Final[Mapping[int, int]] = {
    METHOD_NOT_FOUND: 404,
    **dict.fromkeys((PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS, *RESERVED_NUMBERS), 400),
}
"""Those of HTTP for errors of servers since 2026-07-28 (section Sending Messages to the Server). Other errors have 200."""


MAX_LINES: Final = 1000
"""Lines of servers that a `ServerLog` keeps. Each has at most 2,000 characters."""


@final
class ServerLog:
    """The last lines that the servers of a bridge wrote to stderr, without secrets. Used on the loop."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=MAX_LINES)
        self._count = 0

    def add(self, line: str) -> None:
        """Keep a line. The oldest one goes."""
        self._lines.append(scrub(line))
        self._count += 1

    def after(self, number: int) -> tuple[int, list[str]]:
        """Return the number of the last line, and the lines behind this number that are kept. All, where there is no such line
        yet: it is that of an earlier log.
        """
        new = self._count - number if number <= self._count else self._count
        return self._count, list(islice(self._lines, max(0, len(self._lines) - new), None))


@final
class Bridge:
    """The dialect of all clients: a `Plugin`. `headers(caller)` are those of requests by HTTP for the caller with this token.
    With `share` all sessions speak to one server; else each has its own, and what one caller sends without a session shares one.
    `server_log` keeps what servers write to stderr.
    """

    FRAMING: Final = "newline"
    HAS_SHUTDOWN: Final = False
    HAS_AGENT_METHODS: Final = False

    def __init__(
        self,
        target: Target,
        *,
        share: bool = False,
        headers: HeadersFor | None = None,
        server_log: ServerLog | None = None,
    ) -> None:
        self.target: Final = target
        self.headers: Final = headers
        self.server_log: Final = server_log
        self.share: Final = share
        self.mirrors: Final[dict[str, Mapping[str, tuple[str, ...]]]] = {}
        """The arguments that HTTP repeats in headers: their paths, by header and by tool."""
        self._shared: dict[tuple[str, bool], Upstream] = {}

    def open_session(self, connection: ClientConnection, control: DaemonControl, saved: bytes) -> BridgeSession:
        return BridgeSession(self, connection, control)

    def check(self, host: Host) -> None:
        """Nothing is declared here."""

    def shared(self, host: Host, subject: str, *, modern: bool) -> Upstream:
        """The one of this caller's requests that have none of their own; with `share` that of all callers. A new one where that
        has ended. A process serves both eras; by HTTP a session is of one.
        """
        key = ("" if self.share else subject, modern or isinstance(self.target, Command))
        if key not in self._shared or self._shared[key].ended:
            self._shared = {each: upstream for each, upstream in self._shared.items() if not upstream.ended}
            self._shared[key] = Upstream(host, self)
        return self._shared[key]

    def restart(self) -> None:
        """End the servers that are not a session's own. The next request begins with new ones."""
        for upstream in self._shared.values():
            upstream.end()

    def check_output(self, schema: dict[str, Any], value: Any) -> OutputCheck:  # JSON
        """Check what a tool gave against its output schema. References to elsewhere are not followed."""
        from .gateway.page.endpoint import OutputCheck  # late: the page alone asks for it
        from .imports.mcp.reading import read_output
        from .imports.openapi.document import PartError
        from .imports.validation import Checker

        try:
            require("the check of structured output", "mcp", "jsonschema_rs")
            fault = Checker(read_output(schema)).fault(value)
        except ImportFailed as exc:
            return OutputCheck(unchecked=str(exc))
        except PartError as exc:
            return OutputCheck(unchecked=exc.reason)
        if fault is None:
            return OutputCheck()
        wrong = fault.as_invalid_params()
        expected = " ".join((wrong.expected, ", ".join(map(str, wrong.accepted or ())))).strip()
        return OutputCheck(path=wrong.param, expected=expected, received=wrong.received)

    def drain(self, session: BridgeSession) -> None:
        """The daemon is about to end."""
        for upstream in self._shared.values():
            upstream.drain(session)


@final
class BridgeSession(McpMessages):
    """A client's session and its dialect. It begins to speak to a server with its first message."""

    def __init__(self, bridge: Bridge, connection: ClientConnection, control: DaemonControl) -> None:
        self._bridge = bridge
        self.connection: Final = connection
        self.control: Final = control
        self._upstream: Upstream | None = None
        self._subject = ""
        self.documents: Final = None

    @property
    def dialect(self) -> BridgeSession:
        return self

    def registry(self) -> Registry:
        return Registry([], otherwise=_FORWARD)

    def save(self) -> bytes:
        return b""

    def bind(self, subject: str) -> None:
        self._subject = subject

    @property
    def client(self) -> ClientContextBackend:
        """The way to the client, beside the answers to its requests."""
        return cast("ClientContextBackend", self.connection.context_backend)

    def close(self) -> None:
        if self._upstream is not None:
            self._upstream.leave(self, end=not self._bridge.share)
            self._upstream = None

    def drain(self) -> None:
        self._bridge.drain(self)
        if self._upstream is not None:
            self._upstream.drain(self)

    def note_cancel(self, call: Request, params: Raw | None) -> None:
        if call.arguments is not None:
            call.arguments[0].cancelled_with = params

    def receive(self, call: Request) -> Failure | Ignored | None:
        if call.id == NULL_ID:
            return InvalidRequest("invalid-id-type")
        meta = meta_of(call.params)
        if isinstance(meta, InvalidParams):
            return meta
        modern = meta is not None and meta.protocol_version is not None
        upstream = self._upstream_for(modern=modern)
        upstream.touch()
        upstream.caller = bearer_of(call.metadata)
        if call.id is None:
            upstream.notify(call)
            return IGNORED
        call.arguments = (_Call(self, call, modern), upstream)
        return None

    def _upstream_for(self, *, modern: bool) -> Upstream:
        host = self.connection.host
        if modern:
            return self._bridge.shared(host, self._subject, modern=True)
        if self._upstream is None:
            bridge = self._bridge
            self._upstream = bridge.shared(host, "", modern=False) if bridge.share else Upstream(host, bridge)
            self._upstream.enter(self)
        return self._upstream


class _Call(Struct, eq=False):
    """A request of a client that the server has not answered. `modern` ones are of 2026-07-28. `token` is the client's own, for
    progress.
    """

    session: BridgeSession
    request: Request
    modern: bool
    token: Raw | None = None
    cancelled_with: Raw | None = None
    """The params of the notification that cancels it."""

    @property
    def id(self) -> Raw:
        return Raw(self.request.id or NULL_ID)

    @property
    def only_listens(self) -> bool:
        return self.request.method == _LISTEN

    @property
    def client(self) -> ClientContextBackend:
        """The way to the client, beside its answer."""
        return cast("ClientContextBackend", self.request.context_backend)


def _forwarding() -> OperationSpec:
    """What every method is: it waits for the server's answer, for as long as its caller does."""
    service = Service("")

    @service.mutation("bridge/forward", timeout=None)
    async def forward(**params: Any) -> Raw:  # JSON
        """Pass a request on."""
        raise AssertionError("params are not decoded")

    def invoke(ctx: Any, arguments: tuple[Any, ...]) -> Coroutine[Any, Any, Raw]:  # as `receive` sets them
        call, upstream = arguments
        return cast("Upstream", upstream).call(call)

    return replace(service.operations[0], invoke=invoke, output=None, only_waits=True, limit=MAX_CALLS)


_FORWARD: Final = _forwarding()


@final
class Upstream:
    """One connection to the server, from now on until it is lost or not needed any more. Its sessions end with it. Where sessions
    share it, only the first one shakes hands with the server.
    """

    def __init__(self, host: Host, bridge: Bridge) -> None:
        self._bridge = bridge
        self.caller: str = ""
        """The token of the caller whose message came last. All of them are of one caller, unless it is shared."""
        self._note: Callable[[str], None] = (lambda _: None) if bridge.server_log is None else bridge.server_log.add
        self._server = ServerMessages(bridge.target.shown.rpartition("/")[2] or bridge.target.shown, on_line=self._note)
        self._idle_seconds = host.settings.http_session_timeout
        self._sessions: dict[BridgeSession, None] = {}
        self._calls: dict[int, _Call] = {}
        self._tasks: dict[int, _Call] = {}
        """Calls that were answered with a task of 2025-11-25, whose progress goes on. The newest of them."""
        self._ids = count(1)
        self._connection: Connection | McpHttp | None = None
        self._scope: anyio.CancelScope | None = None
        self._changed = ChangeSignal()
        self._since = monotonic()
        self._owner_unknown = RepeatedWarning("bridge.owner_unknown")
        self._welcome: Raw | None = None
        self._initializing = self._initialized = False
        self._ended = False
        host.spawn(self._run)

    async def _headers(self) -> Mapping[str, str]:
        return {} if self._bridge.headers is None else await self._bridge.headers(self.caller)

    @property
    def ended(self) -> bool:
        """Whether no request can be sent any more."""
        return self._ended or (self._connection is not None and not self._connection.usable)

    def touch(self) -> None:
        """It is used now."""
        self._since = monotonic()

    def enter(self, session: BridgeSession) -> None:
        self._sessions[session] = None

    def leave(self, session: BridgeSession, *, end: bool) -> None:
        """The session has ended; with `end` the server does, too."""
        self._sessions.pop(session, None)
        self._tasks = {call_id: call for call_id, call in self._tasks.items() if call.session is not session}
        self.touch()
        if end:
            self.end()

    def end(self) -> None:
        """End the server."""
        self._ended = True
        if self._scope is not None:
            self._scope.cancel()

    def drain(self, session: BridgeSession) -> None:
        """End the requests of this session that only listen."""
        for call in [*self._calls.values()]:
            if call.session is session and call.only_listens:
                call.request.end(Cancelled())

    # -- its life --------------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        bridge, loss = self._bridge, CLOSED
        with anyio.CancelScope() as self._scope:
            if self._ended:
                return
            try:
                async with (
                    linked(bridge.target, self._server, self._handlers(), headers=self._headers) as connection,
                    background_tasks() as tasks,
                ):
                    self._connection = connection
                    self.touch()
                    self._changed.notify()
                    tasks.start_soon(self._end_idle)
                    if not isinstance(connection, Connection):
                        tasks.start_soon(self._listen, connection)
                    loss = await connection.wait_lost()
            except ConnectionFailed as exc:
                loss = exc.loss
            except Exception as exc:  # noqa: BLE001 - a fault of our own: no call may wait for this server any more
                log.error("daemon.fault", exc=exc)
        self._lose(loss)

    def _lose(self, loss: ConnectionLoss) -> None:
        """End the sessions: what the server knew of them is gone. Their open requests fail with the connection."""
        if loss is not CLOSED:
            last = {"last_line": scrub(self._server.last_line)} if self._server.last_line else {}
            log.warning("bridge.server_lost", server=self._server.import_name, reason=loss.reason, **last)
            self._note(f"The server has ended: {printable(loss.reason)}.")
        self._ended = True
        self._changed.notify()
        for session in [*self._sessions]:
            session.control.exit(failed=True)
        self._sessions.clear()

    async def _end_idle(self) -> None:
        while True:
            used = self._calls or self._sessions
            left = self._idle_seconds if used else self._since + self._idle_seconds - monotonic()
            if left <= 0:
                self.end()
            await anyio.sleep(max(left, 0))

    async def _listen(self, connection: McpHttp) -> None:
        """Take what a server of the legacy era says by itself, once the handshake is over."""
        while not self._initialized:
            await self._changed.wait()
        await connection.listen()

    # -- from the clients ------------------------------------------------------------------------------------------

    def notify(self, call: Request) -> None:
        """Pass a notification on, behind all that came before it. What finds no room is dropped and logged."""
        if call.method == INITIALIZED:
            if self._initialized and self._bridge.share:
                return
            self._initialized = True
        params = UNSET if call.params is None else call.params
        if self._connection is None or not self._connection.post(encode_notification(call.method, params)):
            self._server.note_dropped()
        self._changed.notify()

    async def call(self, call: _Call) -> Raw:
        """The server's result. Raises `FailureError` with its error."""
        connection = await self._opened()
        if call.request.method != INITIALIZE or call.modern:
            return await self._exchange(connection, call)
        while self._initializing:
            await self._changed.wait()
        if self._welcome is None or not self._bridge.share:
            self._initializing = True
            try:
                if not isinstance(connection, Connection):
                    connection.agreed = LEGACY
                self._welcome = await self._exchange(connection, call)
            finally:
                self._initializing = False
                self._changed.notify()
        revision = _revision(self._welcome)
        call.session.revision = revision
        if not isinstance(connection, Connection):
            connection.agreed = Agreed(revision)
        return self._welcome

    async def _opened(self) -> Connection | McpHttp:
        while self._connection is None and not self.ended:
            await self._changed.wait()
        if self._connection is None or self.ended:
            raise FailureError(Unavailable(upstream=True))
        return self._connection

    async def _exchange(self, connection: Connection | McpHttp, call: _Call) -> Raw:
        call_id = next(self._ids)
        headers: Mapping[str, str] | None = None
        if call.modern and not isinstance(connection, Connection):
            headers = self._mirrored(call.request)
        params, call.token = _swapped(call.request.params, _TOKEN, b"%d" % call_id)
        message = OutgoingRequest(call_id, call.request.method, bytes(params) or None, headers)
        pending = PendingCall(call_id, message.size, method=message.method)
        self._calls[call_id] = call
        try:
            await connection.start(pending, message)
            result = await pending.result()
        except RemoteError as exc:
            raise FailureError(_as_it_is(exc)) from exc
        except ConnectionFailed as exc:
            log.info("bridge.unanswered", server=self._server.import_name, reason=exc.loss.reason)
            raise FailureError(Internal() if exc.sent else Unavailable(upstream=True)) from exc
        except InvalidReply as exc:
            log.warning("bridge.unanswered", server=self._server.import_name, reason=str(exc))
            raise FailureError(Internal()) from exc
        finally:
            connection.forget(pending, _cancellation(call, call_id))
            del self._calls[call_id]
            call.request.arguments = None  # it refers to the call, which refers to it
            self.touch()
        if headers is not None and message.method == "tools/list":
            self._learn_headers(result)
        if call.token is not None and not call.modern and "task" in _members(result):
            self._tasks[call_id] = call
            if len(self._tasks) > MAX_TASKS:
                del self._tasks[next(iter(self._tasks))]
        return _of_client(result, call) if call.only_listens else result

    def _learn_headers(self, listed: Raw) -> None:
        """Keep which arguments of the listed tools HTTP repeats in headers."""
        try:
            tools = decoder_for(_Tools)(listed).tools
        except DECODE_ERRORS:
            return
        mirrors = self._bridge.mirrors
        for tool in tools:
            mirrors.pop(tool.name, None)
            with suppress(ValueError):  # such a tool must not be called: the server refuses it
                if found := mirrored_params(tool.input_schema):
                    mirrors[tool.name] = found
        while len(mirrors) > MAX_MIRRORS:
            del mirrors[next(iter(mirrors))]

    def _mirrored(self, call: Request) -> Mapping[str, str]:
        """The headers that repeat what the params say (2026-07-28, section Standard MCP Request Headers)."""
        try:
            params = decoder_for(dict[str, Any])(call.params or b"{}")
        except DECODE_ERRORS:
            return {}
        name, arguments = params.get(NAMING.get(call.method, "")), params.get("arguments")
        if not isinstance(name, str):
            return {}
        headers = {"mcp-name": name}
        if call.method == "tools/call" and isinstance(arguments, dict):
            headers |= mirrored_values(self._bridge.mirrors.get(name, {}), arguments)
        return {header: encoded(text) for header, text in headers.items()}

    # -- from the server -------------------------------------------------------------------------------------------

    def _handlers(self) -> Handlers:
        handlers = self._server.handlers()
        handlers.requests.clear()
        handlers.notifications.clear()
        handlers.any_request = self._relay
        handlers.any_notification = self._tell
        return handlers

    async def _relay(self, request: ServerRequest) -> bytes:
        """Ask the client that the question is for. Its response, with the server's id."""
        client = self._client_of([call for call in self._calls.values() if not (call.modern or call.only_listens)])
        if client is None:
            return encode_error_response(request.id, MethodNotFound())
        try:
            response = await client.relay(request.method, UNSET if request.params is None else request.params)
        except ClientRefused:
            return encode_error_response(request.id, Unavailable())
        if response.error is not None:
            return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (request.id, bytes(response.error))
        return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (request.id, bytes(response.result or b"null"))

    def _tell(self, message: ServerNotification) -> None:
        members = _members(message.params)
        subscription = _members(members.get("_meta")).get(SUBSCRIPTION_ID)
        if message.method == _CANCELLED:  # of a question that was answered, unless it ends a request that listens
            if (call := self._of(members.get("requestId"))) is not None and call.only_listens:
                call.client.notify(_CANCELLED, members | {"requestId": call.id})
                call.request.end(Cancelled())
        elif subscription is not None:
            if (call := self._of(subscription)) is not None:
                call.client.notify(message.method, _of_client(message.params, call))
        elif _TOKEN in members:
            task = self._tasks.get(own_id(bytes(members[_TOKEN])) or UNKNOWN_ID)
            if (
                call := self._of(members[_TOKEN]) or task
            ) is not None and call.token is not None:  # else it is answered
                client = call.client if task is None else call.session.client  # what was beside the answer has ended
                client.notify(message.method, members | {_TOKEN: call.token})
        else:
            self._tell_unrelated(message)

    def _tell_unrelated(self, message: ServerNotification) -> None:
        clients = [session.client for session in self._sessions]
        if message.method == _MESSAGE:
            client = self._client_of([call for call in self._calls.values() if not call.only_listens])
            clients = [] if client is None else [client]
        for client in clients:
            client.notify(message.method, UNSET if message.params is None else message.params)

    def _client_of(self, calls: Sequence[_Call]) -> ClientContextBackend | None:
        """The client of the call that came last, without calls that of the session. None where there is none, and where a shared
        server may mean another one.
        """
        sessions = {call.session for call in calls} or self._sessions.keys()
        if self._bridge.share and len(sessions) > 1:
            self._owner_unknown(server=self._server.import_name)
            return None
        return calls[-1].client if calls else next((session.client for session in sessions), None)

    def _of(self, call_id: Raw | None) -> _Call | None:
        """The call that the server knows by this id."""
        return self._calls.get(own_id(bytes(call_id or b"")) or UNKNOWN_ID)


MAX_MIRRORS: Final = 1024
"""Tools whose headers are remembered."""

_encode: Final = msgspec.json.Encoder().encode


def _cancellation(call: _Call, call_id: int) -> bytes | None:
    """The client's own notification, with the id that the server knows."""
    if call.cancelled_with is None:
        return None
    return encode_notification(_CANCELLED, _members(call.cancelled_with) | {"requestId": Raw(b"%d" % call_id)})


class _Tool(Struct, rename="camel"):
    name: str
    input_schema: dict[str, Any]  # JSON


class _Tools(Struct):
    tools: list[_Tool]


class _Welcome(Struct):
    revision: str = msgspec.field(name="protocolVersion", default=LEGACY.revision)


def _revision(welcome: Raw) -> str:
    try:
        return decoder_for(_Welcome)(welcome).revision
    except DECODE_ERRORS:
        return LEGACY.revision


def _members(text: Raw | None) -> dict[str, Raw]:
    """The members of an object; none of anything else."""
    try:
        found: dict[str, Raw] = decoder_for(dict[str, Raw])(text or b"")
    except DECODE_ERRORS:
        return {}
    return found


def _swapped(value: Raw | None, name: str, told: bytes) -> tuple[Raw, Raw | None]:
    """The same object with this member of its `_meta` in place of its own, and what that was; None where it has none. Without an
    object the text is empty.
    """
    members = _members(value)
    meta = _members(members.get("_meta"))
    own = meta.get(name)
    if own is None or bytes(own) == b"null":
        return value or Raw(b""), None
    return Raw(_encode(members | {"_meta": meta | {name: Raw(told)}})), own


def _of_client(value: Raw | None, call: _Call) -> Raw:
    """The params or the result, which name the request that listens by the client's own id."""
    return _swapped(value, SUBSCRIPTION_ID, bytes(call.id))[0]


def _as_it_is(exc: RemoteError) -> Failure:
    """The server's error, which its client gets as it is."""
    error = exc.error
    data = None if isinstance(error.data, UnsetType) else error.data
    status = _STATUSES.get(error.code, 200)
    return DomainFailure(PROTOCOL_ERROR, error.message, details=data, http_status=status, number=error.code)
