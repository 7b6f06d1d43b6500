"""Carries a peer's requests by HTTP: each is a request of its own, in a task of its own. Streams go on after a loss.

What `Connection` is over a byte transport. Sends nothing that nobody waits for.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final, final

import anyio
import httpx
from anyio.abc import TaskGroup
from msgspec import Raw

from ...errors.backoff import Timing, exponential_backoff
from ..connection import log
from ..connection.connection import CLOSED
from ..connection.pending import PendingCall, PendingRequest, PendingStream
from ..errors import ClientError, ConnectionFailed, ConnectionLoss, OperationTimedOut, Overloaded, Unavailable
from ..messages import OutgoingRequest
from ..policies.retry import retry_after
from .addresses import ServerAddress
from .exchange import Exchange, read_body
from .failures import FOREIGN_ERRORS, loss_of
from .headers import A2A_VERSION, JSON, checked_headers
from .resumption import Resumption

MAX_RECONNECTIONS: Final = 8
"""Attempts in a row to go on with a stream. With the delays between them about half a minute: time for a restart."""

RECONNECT_INITIAL: Final = 0.2
RECONNECT_CAP: Final = 8.0
"""Seconds before the second reconnection, and at most."""

MAX_ASKED_SECONDS: Final = 60.0
"""How long a server may ask to wait before a reconnection."""

_PASSING: Final = (ConnectionFailed, OperationTimedOut, Overloaded, Unavailable)
"""Failures after which a stream is taken up again."""


@final
class HttpConnection:
    """Requests to one address. Any number of them run at once; connections to the server are reused."""

    def __init__(self, client: httpx.AsyncClient, address: ServerAddress, tasks: TaskGroup, *, timing: Timing) -> None:
        self.checks_subscriptions: Final = False
        self._client = client
        self._address = address
        self._tasks = tasks
        self._timing = timing
        self._running: dict[int, tuple[PendingRequest, Exchange]] = {}
        self._closed = False
        self._taken = anyio.Event()

    @property
    def usable(self) -> bool:
        return not self._closed

    async def start(self, request: PendingRequest, message: OutgoingRequest) -> None:
        if self._closed:
            raise ConnectionFailed(CLOSED, sent=False)
        if isinstance(request, PendingCall) and request.on_progress is not None:
            raise ValueError("on_progress: no progress is told by HTTP")
        checked_headers(message.service_params or {})
        exchange = Exchange(self._client, self._address)
        self._running[request.id] = request, exchange
        self._tasks.start_soon(self._run, request, message, exchange)

    def forget(self, request: PendingRequest) -> bool:
        """Its HTTP request is closed, by which the server knows that nobody waits."""
        running = self._running.pop(request.id, None)
        if running is None:
            return request.done
        running[1].scope.cancel()
        return running[1].sent

    async def send(self, body: bytes) -> None:
        raise RuntimeError("there are no notifications by HTTP: A2A has none")

    async def send_raw(self, data: bytes) -> None:
        raise RuntimeError("no bytes can be sent between the messages of HTTP")

    def resume_reading(self) -> None:
        self._taken.set()
        self._taken = anyio.Event()

    def tell_taken(self, stream: PendingStream) -> None:
        """The connection's own window tells it."""

    def close(self) -> None:
        """Call it after the tasks have ended. Fails what still waits."""
        self._closed = True
        for request, _ in self._running.values():
            request.fail(partial(ConnectionFailed, CLOSED))
        self._running.clear()

    async def get(
        self, url: str, service_params: Mapping[str, str], *, limit: int
    ) -> tuple[int, Mapping[str, str], bytes]:
        """The status, the headers and the body of a document. Raises `ConnectionFailed`, and `InvalidReply` for more bytes."""
        headers = {"accept": JSON, "accept-encoding": "identity", A2A_VERSION: "1.0", **checked_headers(service_params)}
        try:
            async with self._client.stream("GET", url, headers=headers) as response:
                return response.status_code, response.headers, await read_body(response, limit)
        except FOREIGN_ERRORS as exc:
            raise ConnectionFailed(loss_of(exc, self._address.shown), sent=False) from exc

    # -- one request -------------------------------------------------------------------------------------------

    async def _run(self, request: PendingRequest, message: OutgoingRequest, exchange: Exchange) -> None:
        with exchange.scope:
            try:
                if isinstance(request, PendingCall):
                    request.set_result(await exchange.call(request, message))
                else:
                    await self._stream(request, message, exchange)
            except ClientError as exc:
                error = exc
                request.fail(lambda: error)
            except Exception as exc:  # noqa: BLE001 - a fault of the HTTP library must not end other calls
                log.exception("the HTTP library", exc)
                loss = ConnectionLoss(f"{self._address.shown}: the HTTP library failed")
                request.fail(partial(ConnectionFailed, loss, sent=exchange.sent))
            self._running.pop(request.id, None)

    # -- streams -----------------------------------------------------------------------------------------------

    async def _stream(self, stream: PendingStream, message: OutgoingRequest, exchange: Exchange) -> None:
        resumption = Resumption(message)
        take = partial(self._take, stream, resumption)
        next_message: OutgoingRequest | None = message
        failures = reconnections = 0
        while next_message is not None:
            before = stream.received
            error: ClientError | None = None
            try:
                await exchange.stream(stream, next_message, take)
            except _PASSING as exc:
                error = exc
            if stream.done or stream.abandoned:
                return
            if resumption.ended or (error is None and not resumption.is_cut_off):
                break
            failures = 1 if stream.received > before else failures + 1
            next_message = resumption.request(message.id) if exchange.opened else None
            if error is not None and (next_message is None or failures > MAX_RECONNECTIONS):
                raise error
            if next_message is not None:
                reconnections += 1
                await self._wait(failures, exchange, error, first=reconnections == 1)
        stream.complete(stream.received)

    async def _take(self, stream: PendingStream, resumption: Resumption, value: Raw, event_id: str | None) -> bool:
        """Pass one event on, once its consumer has room for it."""
        if not resumption.take(value, event_id):
            return True
        while not (stream.has_room(value) or stream.abandoned):
            with anyio.move_on_after(ABANDONED_SECONDS):
                await self._taken.wait()
        if not stream.abandoned:
            stream.push(stream.received + 1, value)
        return not (stream.abandoned or stream.done or resumption.is_over)

    async def _wait(self, failures: int, exchange: Exchange, error: ClientError | None, *, first: bool) -> None:
        """The first reconnection of a stream is immediate; a server that cuts it again and again is not pressed. It may ask for
        more time.
        """
        backoff = 0.0 if first else exponential_backoff(RECONNECT_INITIAL, RECONNECT_CAP, max(failures - 2, 0))
        asked = max(exchange.retry_seconds or 0.0, 0.0 if error is None else retry_after(error))
        await self._timing.sleep(max(self._timing.jitter() * backoff, min(asked, MAX_ASKED_SECONDS)))


ABANDONED_SECONDS: Final = 1.0
"""How often a stream that waits for its consumer looks whether that was garbage-collected, of which there is no sign."""
