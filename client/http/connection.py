"""Carries a peer's requests by HTTP: each is a request of its own, in a task of its own. Streams go on after a loss.

It replaces `Connection`, which works over a byte transport. Sends no request without a waiting caller.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from ssl import SSLContext
from typing import Final, Protocol, final

import anyio
from anyio.abc import TaskGroup
from msgspec import Raw

from ...change_signal import ChangeSignal
from ...errors.backoff import SYSTEM_TIMING, Timing
from ...framing.http import SseEvent
from ..connection import CLOSED
from ..errors import (
    ClientError,
    ConnectionFailed,
    ConnectionLoss,
    DeclaredErrors,
    InvalidReply,
    type_mismatch,
)
from ..messages import OutgoingRequest
from ..outbound.connection import EventReader, OutboundError, Response
from ..outbound.network import Destination
from ..outbound.pool import ConnectionPool
from ..pending import PendingCall, PendingRequest, PendingStream
from ..retry import Reconnection, retry_after
from ..task_group import background_tasks
from ..validation import check_instance
from .wire import EVENT_STREAM, JSON, checked_headers

MAX_CONNECTIONS: Final = 1_000_000
"""At the same time: as many as there are calls and streams."""


class EventStream(Protocol):
    """The state of one stream, and how it is resumed after a loss.

    `is_over`: stop reading. `ended`: nothing follows the last event. `is_cut_off`: though it ended in order, as far as HTTP goes,
    a proxy or a server that ends may have cut it. `is_incomplete`: if it ends now, the connection was certainly lost.
    """

    @property
    def is_over(self) -> bool: ...

    @property
    def ended(self) -> bool: ...

    @property
    def is_cut_off(self) -> bool: ...

    @property
    def is_incomplete(self) -> bool: ...

    def read(self, event: SseEvent) -> Raw | None:
        """The value of an event; None for one that is not to be passed on. Raises `ClientError`."""
        ...

    def request(self, request_id: int) -> OutgoingRequest | None:
        """Return the request for the events after the last one; None if these can't be told."""
        ...


class HttpProtocol(Protocol):
    """How requests are written as HTTP, and what their responses mean. `passing` are the failures after which a stream is
    taken up again. `max_event` is the bytes of the largest event, `max_waiting` how many may wait for their consumer."""

    passing: tuple[type[ClientError], ...]
    max_event: int
    max_waiting: int

    def write(self, message: OutgoingRequest) -> tuple[str, dict[str, str], bytes]:
        """The path below the address, the headers and the body of a request. Raises `ValueError`."""
        ...

    async def read_result(self, response: Response, request_id: int, errors: DeclaredErrors) -> Raw:
        """The result in a response. Raises `ClientError` and `OutboundError`."""
        ...

    def stream(self, message: OutgoingRequest, errors: DeclaredErrors) -> EventStream:
        """Return the reader of the events of a stream that this request begins."""
        ...


def client_error(exc: OutboundError, shown: str) -> ConnectionFailed | InvalidReply:
    """The exception of a call that got no response from the server at the address `shown`."""
    told = f"{shown}: {exc.phrase}"
    if exc.reason in ("encoding", "protocol", "too-large"):
        return InvalidReply(told)
    return ConnectionFailed(ConnectionLoss(told, gave_up=exc.reason in ("address", "tls")), sent=exc.sent)


@asynccontextmanager
async def open_response(
    pool: ConnectionPool,
    method: str,
    to: Destination,
    headers: Mapping[str, str],
    body: bytes = b"",
    *,
    target: str = "",
    on_connected: Callable[[], object] = bool,
) -> AsyncGenerator[Response]:
    """The response, whose body has not been read. Raises `ClientError`, also for errors of the network within the block."""
    try:
        async with pool.connection(to) as connection:
            on_connected()
            yield await connection.request(method, to, headers, body, target=target)
    except OutboundError as exc:
        raise client_error(exc, to.shown) from exc


@asynccontextmanager
async def open_http(
    to: Destination,
    protocol: HttpProtocol,
    *,
    ssl_context: SSLContext | None = None,
    allow_private: bool = True,
    max_connections: int = MAX_CONNECTIONS,
    timing: Timing = SYSTEM_TIMING,
) -> AsyncGenerator[HttpConnection]:
    """A connection to a server. Leaving it ends what still runs."""
    check_instance("ssl_context", ssl_context, SSLContext, optional=True)
    pool = ConnectionPool(allow_private=allow_private, max_connections=max_connections, ssl_context=ssl_context)
    connection: HttpConnection | None = None
    try:
        async with background_tasks() as tasks:
            connection = HttpConnection(pool, to, protocol, tasks, timing=timing)
            yield connection
    finally:
        if connection is not None:
            connection.close()
        await pool.aclose()


@final
class _Exchange:
    """A request under way. `scope` is cancelled to end it. `sent` says whether a byte may have left."""

    def __init__(self, request: PendingRequest) -> None:
        self.request: Final = request
        self.scope: Final = anyio.CancelScope()
        self.sent = False
        self.opened = False
        """Whether a stream has begun."""
        self.retry_seconds: float | None = None
        """The seconds that the stream's server asks to wait before a reconnection."""


@final
class HttpConnection:
    """Requests to one address. Any number of them run at once; connections to the server are reused."""

    def __init__(
        self, pool: ConnectionPool, to: Destination, protocol: HttpProtocol, tasks: TaskGroup, *, timing: Timing
    ) -> None:
        self.checks_subscriptions: Final = False
        self._pool = pool
        self._to = to
        self._protocol = protocol
        self._tasks = tasks
        self._timing = timing
        self._running: dict[int, _Exchange] = {}
        self._closed = False
        self._taken = ChangeSignal()

    @property
    def usable(self) -> bool:
        return not self._closed

    async def start(self, request: PendingRequest, message: OutgoingRequest) -> None:
        if self._closed:
            raise ConnectionFailed(CLOSED, sent=False)
        if isinstance(request, PendingCall) and request.on_progress is not None:
            raise ValueError("on_progress: no progress is told by HTTP")
        checked_headers(message.service_params or {})
        if isinstance(request, PendingStream):
            request.on_taken = self._taken.notify
        self._running[request.id] = exchange = _Exchange(request)
        self._tasks.start_soon(self._run, exchange, message)

    def forget(self, request: PendingRequest) -> bool:
        """Close its HTTP request, which tells the server that the caller has gone."""
        exchange = self._running.pop(request.id, None)
        if exchange is None:
            return request.done
        exchange.scope.cancel()
        return exchange.sent

    async def send(self, body: bytes) -> None:
        raise RuntimeError("there are no notifications by HTTP")

    async def send_raw(self, data: bytes) -> None:
        raise RuntimeError("no bytes can be sent between the messages of HTTP")

    def close(self) -> None:
        """Call it after the tasks have ended. Fails what still waits."""
        self._closed = True
        for exchange in self._running.values():
            exchange.request.fail(partial(ConnectionFailed, CLOSED))
        self._running.clear()

    async def get(self, to: Destination, service_params: Mapping[str, str], *, limit: int) -> tuple[Response, bytes]:
        """A document of the same server. Raises `ConnectionFailed`, and `InvalidReply` for more bytes."""
        headers = {"accept": JSON, **checked_headers(service_params)}
        async with open_response(self._pool, "GET", to, headers) as response:
            return response, await response.read_all(limit)

    # -- one request -------------------------------------------------------------------------------------------

    async def _run(self, exchange: _Exchange, message: OutgoingRequest) -> None:
        request = exchange.request
        with exchange.scope:
            try:
                if isinstance(request, PendingCall):
                    async with self._open(exchange, message, JSON) as response:
                        if response.media_type == EVENT_STREAM:
                            raise type_mismatch()
                        request.set_result(await self._protocol.read_result(response, message.id, request.errors))
                else:
                    await self._stream(exchange, request, message)
            except ClientError as exc:
                error = exc
                request.fail(lambda: error)
            self._running.pop(request.id, None)

    @asynccontextmanager
    async def _open(self, exchange: _Exchange, message: OutgoingRequest, accept: str) -> AsyncGenerator[Response]:
        """The response, whose body has not been read. Errors of the network within the block are translated, too."""
        path, headers, body = self._protocol.write(message)
        async with open_response(
            self._pool,
            "POST",
            self._to,
            {"accept": accept, **headers},
            body,
            target=self._to.request_target + path,
            on_connected=partial(setattr, exchange, "sent", True),
        ) as response:
            yield response

    # -- streams -----------------------------------------------------------------------------------------------

    async def _stream(self, exchange: _Exchange, stream: PendingStream, message: OutgoingRequest) -> None:
        events, reconnection = self._protocol.stream(message, stream.errors), Reconnection(self._timing)
        next_message: OutgoingRequest | None = message
        while next_message is not None:
            before = stream.received
            error: ClientError | None = None
            try:
                await self._take_events(exchange, stream, next_message, events)
            except self._protocol.passing as exc:
                error = exc
            if stream.done or stream.abandoned:
                return
            if events.ended or (error is None and not events.is_cut_off):
                break
            if stream.received > before:
                reconnection.progressed()
            next_message = events.request(message.id) if exchange.opened else None
            may_go_on = reconnection.may_go_on() and next_message is not None
            if error is not None and not may_go_on:
                raise error
            if next_message is not None:
                asked = 0.0 if error is None else retry_after(error)
                await reconnection.pause(max(exchange.retry_seconds or 0.0, asked))
        stream.complete(stream.received)

    async def _take_events(
        self, exchange: _Exchange, stream: PendingStream, message: OutgoingRequest, events: EventStream
    ) -> None:
        """Take events until the stream ends. Raises `ClientError`; `ConnectionFailed` where it was cut off."""
        async with self._open(exchange, message, f"{EVENT_STREAM}, {JSON};q=0.5") as response:
            if not (response.media_type == EVENT_STREAM and response.is_success):
                raise type_mismatch(await self._protocol.read_result(response, message.id, stream.errors))
            exchange.opened = True
            reader = EventReader(response, limit=self._protocol.max_event)
            async for event in reader:
                exchange.retry_seconds = reader.retry_seconds
                value = events.read(event)
                if value is not None:
                    await self._push(stream, value, event.id if event.has_own_id else None)
                if stream.abandoned or stream.done or events.is_over:
                    return
            exchange.retry_seconds = reader.retry_seconds
            if events.is_incomplete:
                raise OutboundError("lost")

    async def _push(self, stream: PendingStream, value: Raw, event_id: str | None) -> None:
        """Pass one event on, once its consumer has room for it."""
        while not (stream.has_room(value, self._protocol.max_waiting) or stream.abandoned):
            with anyio.move_on_after(ABANDONED_SECONDS):
                await self._taken.wait()
        if not stream.abandoned:
            stream.push(stream.received + 1, value, event_id)


ABANDONED_SECONDS: Final = 1.0
"""How often a stream that waits for its consumer looks whether that was garbage-collected, of which there is no sign."""
