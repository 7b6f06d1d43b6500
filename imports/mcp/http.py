"""A connection by Streamable HTTP, in both eras: with sessions up to 2025-11-25, without since 2026-07-28.

Each request is a POST, answered by one message or by a stream of them. A stream that was cut off is taken up again behind its
last event, where the server numbers them. Redirects are not followed.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from http import HTTPStatus
from typing import Final, TypeAlias, final

import anyio
from anyio.abc import TaskGroup

from ...client.connection import CLOSED, INITIALIZE
from ...client.errors import ClientError, ConnectionFailed, ConnectionLoss, InvalidReply
from ...client.http.connection import open_response
from ...client.http.wire import EVENT_STREAM, JSON
from ...client.incoming import Handlers, IncomingMessages, ServerRequests
from ...client.messages import OutgoingRequest
from ...client.outbound.connection import EventReader, OutboundError, Response
from ...client.outbound.network import Destination, parse_url
from ...client.outbound.pool import ConnectionPool
from ...client.pending import PendingRequest, PendingRequests
from ...client.retry import Reconnection
from ...client.task_group import background_tasks
from ...daemon.logs import log
from ..http.model import UpstreamFault, retry_after_ms
from ..targets import Url
from .model import MAX_REPLY_BYTES, MODERN_REVISION, Agreed
from .server_messages import ServerMessages

SESSION: Final = "mcp-session-id"
PROBE: Final = "server/discover"
"""The method that servers of the legacy era refuse."""

MAX_POSTS: Final = 16
"""Messages without an answer that are under way at a time. More are dropped."""
POST_SECONDS: Final = 10.0
"""How long one of them may take."""
CLOSE_SECONDS: Final = 1.0
"""How long the server may take to end a session."""
DRAIN_SECONDS: Final = 1.0
"""How long is read behind an answer."""

MAX_SESSION_ID: Final = 1024
_MIRRORED_SINCE: Final = "2025-06-18"
"""The first revision whose requests name it in a header."""

_NOT_RUN: Final = frozenset({401, 403, 404, 405, 406, 415, 429, 503})
"""The statuses of a server that has not taken the request."""


Headers: TypeAlias = Callable[[], Awaitable[Mapping[str, str]]]
"""Gives the headers of a request, beside those of the protocol. Raises `ClientError`."""


@asynccontextmanager
async def open_http(
    target: Url, handlers: Handlers, server: ServerMessages, *, headers: Headers
) -> AsyncGenerator[McpHttp]:
    """A connection for as long as the block runs. Nothing is sent before its first message. Raises `ConnectionFailed`."""
    to = parse_url(target.url, allow_private=target.allow_private)
    if isinstance(to, str):
        raise ConnectionFailed(ConnectionLoss(f"the address must be {to}"), sent=False)
    pool = ConnectionPool(allow_private=target.allow_private)
    try:
        async with background_tasks() as tasks:

            async def all_headers() -> Mapping[str, str]:
                return {**target.headers, **await headers()}

            connection = McpHttp(pool, to, tasks, handlers, server, headers=all_headers)
            try:
                yield connection
            finally:
                connection.end(CLOSED)
                with anyio.move_on_after(CLOSE_SECONDS, shield=True):
                    await connection.end_session()
    finally:
        await pool.aclose()


@final
class _Stream:
    """The place of a stream of events."""

    def __init__(self) -> None:
        self.last_id: str | None = None
        self.retry_seconds: float | None = None
        self.has_begun = False
        self.reconnection: Final = Reconnection()


@final
class McpHttp:
    """A `ClientConnection`. `agreed` is what the handshake has found out."""

    def __init__(
        self,
        pool: ConnectionPool,
        to: Destination,
        tasks: TaskGroup,
        handlers: Handlers,
        server: ServerMessages,
        *,
        headers: Headers,
    ) -> None:
        self.agreed = Agreed(MODERN_REVISION)
        self.checks_subscriptions: Final = False
        self.pending: Final = PendingRequests()
        self.loss: ConnectionLoss | None = None
        self._pool = pool
        self._to = to
        self._tasks = tasks
        self._handlers = handlers
        self._server = server
        self._headers = headers
        requests = ServerRequests(tasks, handlers, reply=self._reply, overrun=lambda why: self.end(ConnectionLoss(why)))
        self._incoming = IncomingMessages(self.pending, handlers, server_requests=requests, post=self._post)
        self._scopes: dict[int, anyio.CancelScope] = {}
        self._session: str | None = None
        self._posts = 0
        self._ordered: dict[anyio.Event, None] = {}
        self._lost = anyio.Event()

    # -- as a connection ------------------------------------------------------------------------------------------

    @property
    def usable(self) -> bool:
        return self.loss is None

    async def wait_lost(self) -> ConnectionLoss:
        """Wait for the end and return its cause."""
        await self._lost.wait()
        assert self.loss is not None
        return self.loss

    def end(self, loss: ConnectionLoss) -> None:
        """End the connection for this reason, and tell it to all waiting callers."""
        if self.loss is None:
            self.loss = loss
            self._lost.set()
            self.pending.fail_all(partial(ConnectionFailed, loss))

    async def start(self, request: PendingRequest, message: OutgoingRequest) -> None:
        if self.loss is not None:
            raise ConnectionFailed(self.loss, sent=False)
        self.pending.add(request)
        self._tasks.start_soon(self._run, request, message)

    def forget(self, request: PendingRequest, cancellation: bytes | None = None) -> bool:
        sent = self.pending.remove(request.id) is not None or request.done
        if not request.done:
            if scope := self._scopes.get(request.id):
                scope.cancel()
            if not self.agreed.modern and request.method != INITIALIZE:  # since 2026-07-28 going away says it
                self._post(cancellation or self._handlers.dialect.cancellation(request.id))
        return sent

    async def send(self, body: bytes) -> None:
        headers = {**await self._common(), "accept": f"{JSON}, {EVENT_STREAM}", "content-type": JSON}
        async with self._open("POST", headers, body) as response:
            if response.status == HTTPStatus.NOT_FOUND and self._session is not None:
                self._lose_session()
            await response.drain()

    async def send_raw(self, data: bytes) -> None:
        raise RuntimeError("no bytes can be sent between the messages of HTTP")

    def post(self, body: bytes) -> bool:
        """Send a message that has no answer, without waiting; False where there is no room. Requests that follow are sent when
        the server has it.
        """
        if self._posts >= MAX_POSTS or not self.usable:
            return False
        arrived = anyio.Event()
        self._ordered[arrived] = None
        self._post(body, arrived)
        return True

    def _post(self, body: bytes, arrived: anyio.Event | None = None) -> None:
        """Send a message without waiting. What finds no room is dropped and logged."""
        if self._posts >= MAX_POSTS or not self.usable:
            self._server.note_dropped()
            return
        self._posts += 1
        self._tasks.start_soon(self._reply, body, 1, arrived)

    async def _reply(self, body: bytes, counted: int = 0, arrived: anyio.Event | None = None) -> None:
        try:
            with anyio.move_on_after(POST_SECONDS):
                await self.send(body)
        except ClientError:
            self._server.note_dropped()
        finally:
            self._posts -= counted
            if arrived is not None:
                del self._ordered[arrived]
                arrived.set()

    # -- one request ----------------------------------------------------------------------------------------------

    async def _run(self, request: PendingRequest, message: OutgoingRequest) -> None:
        """One exchange, which may go on behind the answer until its connection can be used again."""
        with anyio.CancelScope() as scope:
            self._scopes[request.id] = scope
            error: ClientError = InvalidReply("the server did not answer")
            for arrived in [*self._ordered]:
                await arrived.wait()
            try:
                await self._exchange(request, message)
            except ClientError as exc:
                error = exc
            if self.pending.remove(request.id):
                request.fail(lambda: error)
        self._scopes.pop(request.id, None)

    async def _exchange(self, request: PendingRequest, message: OutgoingRequest) -> None:
        stream = _Stream()
        body = message.encode(service_params=False)
        async with self._open("POST", await self._headers_of(message), body) as response:
            if message.method == INITIALIZE:
                self._note_session(response)
            if response.media_type != EVENT_STREAM or not response.is_success:
                await self._take_body(response, request)
                return
            await self._read_events(response, stream, lambda: request.done)
        while not request.done:
            if stream.last_id is None or self._session is None or not stream.reconnection.may_go_on():
                raise ConnectionFailed(self._loss("the answer was cut off"))
            await stream.reconnection.pause(stream.retry_seconds)
            if not await self._resume(stream, lambda: request.done):
                raise ConnectionFailed(self._loss("the answer was cut off"))

    async def _resume(self, stream: _Stream, done: Callable[[], bool]) -> bool:
        """Take up a stream, or begin one. False where the server has none."""
        try:
            headers = {**await self._common(), "accept": EVENT_STREAM}
            if stream.last_id is not None:
                headers["last-event-id"] = stream.last_id
            async with self._open("GET", headers) as response:
                if response.status == HTTPStatus.NOT_FOUND and self._session is not None and stream.has_begun:
                    self._lose_session()  # else the server has no such route
                if not (response.is_success and response.media_type == EVENT_STREAM):
                    return response.status >= HTTPStatus.INTERNAL_SERVER_ERROR
                await self._read_events(response, stream, done)
        except (ConnectionFailed, InvalidReply):
            return True  # it may be there again soon
        return True

    async def _take_body(self, response: Response, request: PendingRequest) -> None:
        status = response.status
        if status == HTTPStatus.NOT_FOUND and self._session is not None and not self.agreed.modern:
            self.pending.remove(request.id)
            loss = self._loss("the session has ended")
            request.fail(lambda: ConnectionFailed(loss, sent=False))
            self._lose_session()
            return
        body = await response.read_all(MAX_REPLY_BYTES)
        if response.media_type == JSON and body:
            self._take(body)
        if request.done:
            return
        if response.is_success:
            raise InvalidReply("the server's answer holds none to the request")
        if request.method != PROBE:
            log.warning("import.http_refused", import_=self._server.import_name, status=status)
        fault = UpstreamFault("status", status, retry_after_ms=retry_after_ms(response))
        if status in _NOT_RUN:
            raise ConnectionFailed(self._loss(f"HTTP {status}"), sent=False) from fault
        raise InvalidReply(f"HTTP {status}") from fault

    async def _read_events(self, response: Response, stream: _Stream, done: Callable[[], bool]) -> None:
        """Take the messages of a stream until `done`, or until it ends or is lost."""
        events = EventReader(response, limit=MAX_REPLY_BYTES)
        stream.has_begun = True
        try:
            async for event in events:
                stream.last_id = event.id if event.id is not None else stream.last_id
                stream.reconnection.progressed()
                if event.data.strip():
                    self._take(event.data)
                if done():
                    break
            with anyio.move_on_after(DRAIN_SECONDS):
                await response.drain()
        except OutboundError:
            if stream.last_id is None and not done():
                raise
        finally:
            stream.retry_seconds = events.retry_seconds

    def _take(self, body: bytes) -> None:
        if not self._incoming.handle(body):
            self._incoming.take_garbage("the server wrote a message that is no JSON")

    async def listen(self) -> None:
        """Take what a server of the legacy era says by itself. Returns where nothing more will come."""
        stream = _Stream()
        while self.usable and await self._resume(stream, lambda: not self.usable):
            stream.reconnection.may_go_on()  # however often: it costs little
            await stream.reconnection.pause(stream.retry_seconds)
            if stream.last_id is None and self.agreed.tells_changes:
                self._server.note_gap()

    # -- sessions -------------------------------------------------------------------------------------------------

    def _note_session(self, response: Response) -> None:
        given = response.value(SESSION.encode())
        if given and len(given) <= MAX_SESSION_ID and given.isascii():
            self._session = given

    def _lose_session(self) -> None:
        self._session = None
        self.end(self._loss("the session has ended"))

    async def end_session(self) -> None:
        """Tell the server that the session is no longer needed. Whatever it answers."""
        if self._session is not None:
            try:
                async with self._open("DELETE", await self._common()):
                    self._session = None
            except ClientError:
                return  # the server forgets it by itself

    # -- HTTP -------------------------------------------------------------------------------------------------------

    async def _headers_of(self, message: OutgoingRequest) -> dict[str, str]:
        headers = {**await self._common(), "accept": f"{JSON}, {EVENT_STREAM}", "content-type": JSON}
        if self.agreed.modern:
            headers["mcp-method"] = message.method
            headers |= {name.lower(): value for name, value in (message.service_params or {}).items()}
        elif message.method == INITIALIZE:
            headers.pop("mcp-protocol-version", None)
        return headers

    async def _common(self) -> dict[str, str]:
        headers = dict(await self._headers())
        if self.agreed.revision >= _MIRRORED_SINCE:
            headers["mcp-protocol-version"] = self.agreed.revision
        if self._session is not None:
            headers[SESSION] = self._session
        return headers

    def _open(
        self, method: str, headers: Mapping[str, str], body: bytes = b""
    ) -> AbstractAsyncContextManager[Response]:
        return open_response(self._pool, method, self._to, headers, body)

    def _loss(self, reason: str) -> ConnectionLoss:
        return ConnectionLoss(f"{self._to.shown}: {reason}")
