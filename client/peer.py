"""The public face of a connection: typed calls, notifications and streams.

Starts no process and knows of none: `attach` makes one of any byte transport, `connect` adds the child. Where a call's
connection comes from is its line's to know, and when it is made again its retry policy's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import Any, Final, TypeVar, final, overload

import anyio
import msgspec
from msgspec import UNSET, UnsetType

from ..errors.backoff import SYSTEM_TIMING
from .connection.connector import Connector
from .connection.handlers import Handlers, NotificationHandler, RequestHandler
from .connection.pending import PendingCall, PendingStream
from .errors import ClientError, DeclaredErrors, RemoteError, RequestTimeout
from .messages import encode_request
from .policies.idempotency import KnownKinds, Listed
from .policies.retry import RetryPolicy, call_with_retries, outcome_is_unknown
from .subscription import Subscription, decode_as
from .validation import check_timeout

T = TypeVar("T")

DEFAULT_TIMEOUT: Final = 30.0
"""Seconds that a call waits for its answer: as long as the daemon gives an operation by default."""

LISTING_SECONDS: Final = 2.0
"""How long a server may take to say which operations are queries, before a call that depends on it is not repeated."""


class _Request(msgspec.Struct, frozen=True):
    """What every attempt of one call sends."""

    method: str
    params: object
    service_params: Mapping[str, str] | None
    errors: DeclaredErrors = ()

    def body(self, call_id: int) -> bytes:
        return encode_request(call_id, self.method, self.params, self.service_params)


class Defaults(msgspec.Struct, frozen=True):
    """What a call goes by where it is told nothing else. `timeout` is in seconds, of one attempt; None for no limit."""

    timeout: float | None = DEFAULT_TIMEOUT
    errors: DeclaredErrors = ()
    retry: RetryPolicy | None = None


@final
class Peer:
    """The server at the other end. Any number of calls and streams may be under way at once.

    Belongs to the event loop that made it; not thread-safe. A server that writes garbage fails everyone who waits at
    that moment with `InvalidReply`, as nobody can tell whose answer was lost; the connection goes on with the next good
    frame. How slow consumers of streams are dealt with is said in `pending`: they never hold up a call.
    """

    def __init__(
        self,
        line: Connector,
        served: Handlers,
        defaults: Defaults = Defaults(),  # noqa: B008 - frozen
        *,
        ids: Iterator[int] | None = None,
    ) -> None:
        self._line = line
        self._served = served
        self._defaults = defaults
        self._ids = count(1) if ids is None else ids
        self._kinds = KnownKinds(self._list_operations)

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
        idempotent: bool | None = None,
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
        idempotent: bool | None = None,
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
        idempotent: bool | None = None,
    ) -> Any:
        """Call a method and return its result, decoded into `type` (`msgspec.Raw`: the JSON text as it came).

        `params` is anything that msgspec encodes to an object or an array; None leaves the member out. `timeout` is in
        seconds an attempt, None for no limit. The classes in `errors` give `OperationFailed.details` their declared type.
        `idempotent` says whether a call whose outcome is unknown may be made again; by default that is so for what the
        server lists as a query. Without a retry policy it has no effect.

        Raises a `RemoteError` for the server's errors, `RequestTimeout`, `ConnectionFailed`, `InvalidReply`, each from
        the last attempt. Raises, before anything is sent, `TypeError` for params of a type that JSON does not have, and
        `ValueError` for numbers and texts that it does not have (NaN, lone surrogates) and for a wrong `timeout`.

        When the awaiting task is cancelled or the time is over, the server is told with `$/cancelRequest` and its late
        answer is ignored; nobody waits for it.
        """
        seconds = self._defaults.timeout if isinstance(timeout, UnsetType) else timeout
        check_timeout(seconds)
        request = _Request(method, params, service_params, (*errors, *self._defaults.errors))

        async def once(left: float | None) -> Any:
            return await self._call_once(request, type, _sooner(seconds, left))

        async def again(error: ClientError) -> bool:
            if self._line.over or not error.retryable:
                return False
            if not outcome_is_unknown(error):
                return True
            return await self._kinds.is_query(method, service_params) if idempotent is None else idempotent

        if self._defaults.retry is None:
            return await once(None)
        return await call_with_retries(self._defaults.retry, method, once, again, timing=SYSTEM_TIMING)

    async def _call_once(self, request: _Request, kind: Any, seconds: float | None) -> Any:
        call_id = next(self._ids)
        body = request.body(call_id)
        call = PendingCall(call_id, len(body), request.errors)
        sent = False
        with anyio.move_on_after(seconds):
            connection = await self._line.connection()
            try:
                await connection.start(call, body)
                return decode_as(await call.answer(), kind, request.method)
            finally:
                sent = connection.leave(call)
        assert seconds is not None  # or nothing but an answer ends the block
        raise RequestTimeout(request.method, seconds, sent=sent)

    async def _list_operations(self, service_params: Mapping[str, str] | None) -> list[Listed]:
        request = _Request("services/list", None, service_params)
        seconds = _sooner(self._defaults.timeout, LISTING_SECONDS)
        listed: list[Listed] = await self._call_once(request, list[Listed], seconds)
        return listed

    async def notify(
        self, method: str, params: object = None, *, service_params: Mapping[str, str] | None = None
    ) -> None:
        """Send a notification; returns when the server's input has taken it. Raises as `call` does where it can't be sent."""
        body = encode_request(None, method, params, service_params)
        await (await self._line.connection()).send(body)

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
        check_timeout(timeout)
        call_id = next(self._ids)
        body = encode_request(call_id, method, params, service_params)
        stream = PendingStream(call_id, len(body), (*errors, *self._defaults.errors))
        return Subscription(self._line, stream, body, method=method, kind=type, timeout=timeout)

    def on_request(self, method: str, handler: RequestHandler) -> None:
        """Answer the server's requests of this method with what `handler(params)` returns, each in a task of its own.

        A handler that raises an `OperationError` answers with it; whatever else it raises is logged (as an error of the
        logger `discreet.client`, with its traceback), and INTERNAL to the server. The server may cancel it.

        Requests without a handler are answered METHOD_NOT_FOUND. Handlers that are registered before the first `await`
        on this peer miss nothing.
        """
        self._served.requests[method] = handler

    def on_notification(self, method: str, handler: NotificationHandler) -> None:
        """Call `handler(params)` for each notification of this method, in order, while everything else waits.

        It must return at once: hand longer work to a stream of your own. What it raises is logged.
        """
        self._served.notifications[method] = handler

    def on_unidentified_error(self, handler: Callable[[RemoteError], object]) -> None:
        """Call `handler(error)` for errors that the server could not ascribe to a request (their id is null).

        Without a handler they are warnings of the logger `discreet.client`. A call that the server refused for its size is
        recognised and fails; it does not come here.
        """
        self._served.unidentified = handler

    async def send_raw(self, data: bytes) -> None:
        """Write bytes as they are between two frames: to show, or to test, what a server does with garbage.

        Returns when the server's input has taken them. Raises `ConnectionFailed`.
        """
        await (await self._line.connection()).send_raw(data)


def _sooner(one: float | None, other: float | None) -> float | None:
    """The shorter of two time limits, None being none."""
    limits = [limit for limit in (one, other) if limit is not None]
    return min(limits, default=None)
