"""The public face of a connection: typed calls, notifications and streams.

Starts no process and knows of none: `attach` serves any byte transport, `discreet.client.connect` adds the child.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar, final, overload

import anyio
from msgspec import UNSET, UnsetType

from ..framing.events import Framing
from ..framing.transport import ByteTransport
from .background import background_tasks
from .connection import Connection
from .failures import DeclaredErrors, Loss, RemoteError, RequestTimeout
from .messages import encode_request
from .pending import PendingCall, PendingStream
from .served import NotificationHandler, RequestHandler
from .subscription import Subscription, decode_as

T = TypeVar("T")

DEFAULT_TIMEOUT: Final = 30.0
"""Seconds that a call waits for its answer: as long as the daemon gives an operation by default."""


async def _just_ended() -> Loss:
    return Loss("the server ended the connection")


@asynccontextmanager
async def attach(
    transport: ByteTransport,
    *,
    framing: Framing = "content-length",
    timeout: float | None = DEFAULT_TIMEOUT,
    explain: Callable[[], Awaitable[Loss]] = _just_ended,
) -> AsyncGenerator[Peer]:
    """A `Peer` over a transport, for as long as the block runs. The transport stays the caller's to close.

    `timeout` is what `Peer.call` uses when it is given none, in seconds. `explain` is asked, once, why the input ended.
    Leaving gives the server a bounded time to take what was sent, and ends what other tasks still wait for with
    `ConnectionFailed`.
    """
    connection: Connection | None = None
    try:
        async with background_tasks() as tasks:
            connection = Connection(transport, tasks, framing=framing, explain=explain)
            yield Peer(connection, timeout)
    finally:
        if connection is not None:
            await connection.close()


@final
class Peer:
    """The server at the other end. Any number of calls and streams may be under way at once.

    Belongs to the event loop that made it; not thread-safe. A server that writes garbage fails everyone who waits at
    that moment with `InvalidReply`, as nobody can tell whose answer was lost; the connection goes on with the next good
    frame. How slow consumers of streams are dealt with is said in `pending`: they never hold up a call.
    """

    def __init__(self, connection: Connection, timeout: float | None) -> None:
        self._connection = connection
        self._timeout = timeout

    @overload
    async def call(
        self,
        method: str,
        params: object = None,
        *,
        type: type[T],
        timeout: float | None | UnsetType = UNSET,
        service_params: Mapping[str, str] | None = None,
        errors: DeclaredErrors = (),
    ) -> T: ...

    @overload
    async def call(
        self,
        method: str,
        params: object = None,
        *,
        type: Any = Any,
        timeout: float | None | UnsetType = UNSET,
        service_params: Mapping[str, str] | None = None,
        errors: DeclaredErrors = (),
    ) -> Any: ...

    async def call(
        self,
        method: str,
        params: object = None,
        *,
        type: Any = Any,  # unions and the like are no `type[T]`
        timeout: float | None | UnsetType = UNSET,
        service_params: Mapping[str, str] | None = None,
        errors: DeclaredErrors = (),
    ) -> Any:
        """Call a method and return its result, decoded into `type` (`msgspec.Raw`: the JSON text as it came).

        `params` is anything that msgspec encodes to an object or an array; None leaves the member out. `timeout` is in
        seconds, None for no limit. The classes in `errors` give `OperationFailed.details` their declared type.

        Raises a `RemoteError` for the server's errors, `RequestTimeout`, `ConnectionFailed`, `InvalidReply`; and
        `TypeError`, before anything is sent, for params that are no JSON. When the awaiting task is cancelled or the
        time is over, the server is told with `$/cancelRequest` and its late answer is ignored; nobody waits for it.
        """
        call_id = self._connection.pending.next_id()
        body = encode_request(call_id, method, params, service_params)
        call = PendingCall(call_id, len(body), errors)
        seconds = self._timeout if isinstance(timeout, UnsetType) else timeout
        sent = False
        with anyio.move_on_after(seconds):
            try:
                await self._connection.start(call, body)
                return decode_as(await call.answer(), type, method)
            finally:
                sent = self._connection.leave(call)
        assert seconds is not None  # or nothing but an answer ends the block
        raise RequestTimeout(method, seconds, sent=sent)

    async def notify(
        self, method: str, params: object = None, *, service_params: Mapping[str, str] | None = None
    ) -> None:
        """Send a notification; returns when the server's input has taken it. Raises `ConnectionFailed`, `TypeError`."""
        await self._connection.send(encode_request(None, method, params, service_params))

    @overload
    def subscribe(
        self,
        method: str,
        params: object = None,
        *,
        type: type[T],
        timeout: float | None = None,
        service_params: Mapping[str, str] | None = None,
        errors: DeclaredErrors = (),
    ) -> Subscription[T]: ...

    @overload
    def subscribe(
        self,
        method: str,
        params: object = None,
        *,
        type: Any = Any,
        timeout: float | None = None,
        service_params: Mapping[str, str] | None = None,
        errors: DeclaredErrors = (),
    ) -> Subscription[Any]: ...

    def subscribe(
        self,
        method: str,
        params: object = None,
        *,
        type: Any = Any,
        timeout: float | None = None,
        service_params: Mapping[str, str] | None = None,
        errors: DeclaredErrors = (),
    ) -> Subscription[Any]:
        """The events of a subscription, each decoded into `type`: `async for event in peer.subscribe(…)`.

        `timeout` is how many seconds one event may be waited for, None for no limit; the rest is as in `call`. What
        ends it, and how, is said in `Subscription`. To end it at a definite moment, use it in `async with`.
        """
        call_id = self._connection.pending.next_id()
        body = encode_request(call_id, method, params, service_params)
        stream = PendingStream(call_id, len(body), errors)
        return Subscription(self._connection, stream, body, method=method, kind=type, timeout=timeout)

    def on_request(self, method: str, handler: RequestHandler) -> None:
        """Answer the server's requests of this method with what `handler(params)` returns, each in a task of its own.

        A handler that raises an `OperationError` answers with it; whatever else it raises ends the connection and
        leaves the block that made it. The server may cancel it. Requests without a handler are answered
        METHOD_NOT_FOUND. Handlers that are registered before the first `await` on this peer miss nothing.
        """
        self._connection.served.requests[method] = handler

    def on_notification(self, method: str, handler: NotificationHandler) -> None:
        """Call `handler(params)` for each notification of this method, in order, while everything else waits.

        It must return at once: hand longer work to a stream of your own. What it raises ends the connection.
        """
        self._connection.served.notifications[method] = handler

    def on_unidentified_error(self, handler: Callable[[RemoteError], object]) -> None:
        """Call `handler(error)` for errors that the server could not ascribe to a request (their id is null).

        A call that the server refused for its size is recognised and fails; it does not come here.
        """
        self._connection.inbox.on_unidentified = handler

    async def send_raw(self, data: bytes) -> None:
        """Write bytes as they are between two frames: to show, or to test, what a server does with garbage.

        Returns when the server's input has taken them. Raises `ConnectionFailed`.
        """
        await self._connection.send_raw(data)
