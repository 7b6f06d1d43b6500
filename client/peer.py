"""The public face of a connection: typed calls, notifications and streams.

Knows of no process. The connector provides the connection of each call; the retry policy decides when a call is made again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import Any, Final, TypedDict, TypeVar, Unpack, final, overload

import anyio
import msgspec
from msgspec import UNSET, Raw, UnsetType

from .. import call_tracing
from ..awaited import refuses_bool
from ..errors.backoff import SYSTEM_TIMING
from .connector import Connector, OwnLoop
from .errors import ClientError, DeclaredErrors, RemoteError, RequestTimeout
from .incoming import Handlers, NotificationHandler, RequestHandler
from .messages import encode_notification
from .pending import ProgressHandler, Request
from .retry import IsQuery, ListedOperation, OperationKinds, RetryPolicy, call_with_retries, outcome_is_unknown
from .subscription import Subscription, as_declared, decode_as, name_method, prepare_type
from .validation import (
    check_callback,
    check_count,
    check_errors,
    check_instance,
    check_plain_function,
    check_strings,
    check_timeout,
    encode_params,
)

T = TypeVar("T")

DEFAULT_TIMEOUT: Final = 30.0
"""Seconds that a call waits for its answer. The daemon's default deadline of an operation is the same."""

LISTING_SECONDS: Final = 2.0
"""Seconds that a server has to list its operations. Without the list, a call whose outcome is unknown is not repeated."""


class CallOptions(TypedDict, total=False):
    """The options of `Peer.call`."""

    timeout: float | None | UnsetType
    service_params: Mapping[str, str] | None
    errors: DeclaredErrors
    idempotent: bool | None
    on_progress: ProgressHandler | None


class SubscribeOptions(TypedDict, total=False):
    """The options of `Peer.subscribe`."""

    timeout: float | None
    service_params: Mapping[str, str] | None
    errors: DeclaredErrors
    window: int | None


class CallDefaults(msgspec.Struct, frozen=True):
    """The options of calls that set none themselves. `timeout` is in seconds per attempt; None for no limit.

    `errors` and `service_params` are added to those of a call, whose own come first.
    """

    timeout: float | None = DEFAULT_TIMEOUT
    errors: DeclaredErrors = ()
    retry: RetryPolicy | None = None
    service_params: Mapping[str, str] = {}

    def with_service_params(self, own: Mapping[str, str] | None) -> Mapping[str, str] | None:
        """Return the service params of a call with these of its own."""
        return {**self.service_params, **(own or {})} or None


@final
class Peer:
    """The server at the other end. Any number of calls and streams may run at once.

    Belongs to the event loop that made it. In another one, its methods raise `RuntimeError`.

    If the server writes garbage, every waiting call raises `InvalidReply`, because any answer may have been lost. The
    connection goes on with the next good frame. A slow consumer of a stream never delays a call.
    """

    def __init__(
        self,
        connector: Connector,
        handlers: Handlers,
        defaults: CallDefaults = CallDefaults(),  # noqa: B008 - frozen
        *,
        ids: Iterator[int] | None = None,
        is_query: IsQuery | None = None,
    ) -> None:
        self._connector = OwnLoop(connector)
        self._handlers = handlers
        self._defaults = defaults
        self._ids = count(1) if ids is None else ids
        self._is_query = is_query or OperationKinds(self._list_operations).is_query

    @overload
    async def call(self, method: str, params: object = None, *, type: type[T], **options: Unpack[CallOptions]) -> T: ...

    @overload
    async def call(
        self, method: str, params: object = None, *, type: Any = Any, **options: Unpack[CallOptions]
    ) -> Any: ...

    @refuses_bool
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
        on_progress: ProgressHandler | None = None,
    ) -> Any:
        """Call a method and return its result, decoded into `type` (`msgspec.Raw`: the undecoded JSON text).

        `params` is anything that msgspec encodes to an object or an array; None leaves the member out. `timeout` is in seconds
        per attempt, None for no limit.

        A declared error is raised as its class in `errors`, with its fields, and with `OperationFailed` as its cause. If its
        class is not in `errors`, it is raised as `OperationFailed`.

        `idempotent` says whether a retry policy may repeat a call that may have had an effect. By default it may if the server
        lists the operation as a query.

        `on_progress(value)` is called in order with each progress that the server reports (`ctx.progress`), until the call
        returns. It must return at once. Its exceptions are logged.

        Raises a class in `errors`, a `RemoteError` for the server's other errors, `RequestTimeout`, `ConnectionFailed` or
        `InvalidReply`, each from the last attempt. Before anything is sent it raises `TypeError` for wrong arguments, for
        params that are no JSON object or array, and for types that JSON does not have. It raises `ValueError` for numbers and
        texts that JSON does not have (NaN, lone surrogates) and for a negative `timeout`.

        If the awaiting task is cancelled or the time-out passes, the server gets `$/cancelRequest`, and a late answer is
        ignored.
        """
        seconds = self._defaults.timeout if isinstance(timeout, UnsetType) else timeout
        _check_options(method, seconds, service_params, errors)
        prepare_type(type)
        if on_progress is not None:
            check_plain_function("on_progress", on_progress)
        service_params = self._defaults.with_service_params(service_params)
        request = Request(method, params, service_params, (*errors, *self._defaults.errors), on_progress)

        async def attempt(left: float | None) -> Any:
            return await self._call_once(request, type, _shorter(seconds, left))

        async def may_retry(error: ClientError) -> bool:
            if self._connector.closed or not error.retryable:
                return False
            if not outcome_is_unknown(error):
                return True
            return await self._is_query(method, service_params) if idempotent is None else idempotent

        with as_declared():
            if self._defaults.retry is None:
                return await attempt(None)
            return await call_with_retries(self._defaults.retry, method, attempt, may_retry, timing=SYSTEM_TIMING)

    async def _call_once(self, request: Request, kind: Any, seconds: float | None) -> Any:
        if call_tracing.tracer is None:
            return await self._exchange(request, kind, seconds)
        with call_tracing.tracer.call(request.method) as span:
            return await self._exchange(request.traced(span.headers, self._handlers.dialect.trace), kind, seconds)

    async def _exchange(self, request: Request, kind: Any, seconds: float | None) -> Any:
        call, message = request.call(next(self._ids), self._handlers.dialect)
        sent = False
        with anyio.move_on_after(seconds):
            connection = await self._connector.connection()
            try:
                await connection.start(call, message)
                return decode_as(await call.result(), kind, request.method)
            except RemoteError as exc:
                name_method(exc, request.method, other="subscribe")
                raise
            finally:
                sent = connection.forget(call)
        assert seconds is not None  # without a limit, the block only ends by returning or raising
        raise RequestTimeout(request.method, seconds, sent=sent)

    async def _list_operations(self, service_params: Mapping[str, str] | None) -> list[ListedOperation]:
        request = Request("services/list", None, service_params)
        seconds = _shorter(self._defaults.timeout, LISTING_SECONDS)
        listed: list[ListedOperation] = await self._call_once(request, list[ListedOperation], seconds)
        return listed

    async def notify(
        self, method: str, params: object = None, *, service_params: Mapping[str, str] | None = None
    ) -> None:
        """Send a notification. Returns when the server's input has taken it.

        Raises `ConnectionFailed`, `TypeError` and `ValueError` for wrong params as `call` does, and `RuntimeError` by HTTP,
        which has no notifications.
        """
        _check_options(method, None, service_params)
        body = encode_notification(method, params, self._defaults.with_service_params(service_params))
        connection = await self._connector.connection()
        await connection.send(body)

    @overload
    def subscribe(
        self, method: str, params: object = None, *, type: type[T], **options: Unpack[SubscribeOptions]
    ) -> Subscription[T]: ...

    @overload
    def subscribe(
        self, method: str, params: object = None, *, type: Any = Any, **options: Unpack[SubscribeOptions]
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
        window: int | None = None,
    ) -> Subscription[Any]:
        """Subscribe to an operation's events, each decoded into `type`: `async for event in peer.subscribe(…)`.

        `timeout` is how many seconds to wait for each event, None for no limit. The rest is as in `call`. `Subscription` says
        when and how it ends; `async with` ends it at the end of the block. A discreet daemon refuses an operation of another
        kind before it runs (`services/subscribe`).

        With a `window` a discreet daemon sends at most so many events (1 to 1,024) beyond those that were taken. So a slow
        consumer slows its own producer even while other calls and streams use the connection. By HTTP each stream has a
        connection of its own, which does the same.
        """
        _check_options(method, timeout, service_params, errors)
        if window is not None:
            check_count("window", window, 1)
        prepare_type(type)
        request = Request(
            method,
            None if params is None else Raw(encode_params(params)),
            self._defaults.with_service_params(service_params),
            (*errors, *self._defaults.errors),
            window=window,
        )
        trace = self._handlers.dialect.trace
        return Subscription(self._connector, request, ids=self._ids, trace=trace, kind=type, timeout=timeout)

    def on_request(self, method: str, handler: RequestHandler) -> None:
        """Answer the server's requests of this method with the result of `handler(params)`. Each runs in its own task.

        The handler is a coroutine function, or a plain one that returns at once.

        An `OperationError` of the handler is the answer. Any other exception is logged with its traceback, as an error of
        the logger `discreet.client`, and the server gets INTERNAL. The server may cancel the handler.

        Requests without a handler are answered METHOD_NOT_FOUND. Handlers that are registered before the first `await` on
        this peer miss no request.
        """
        check_instance("method", method, str)
        check_callback("handler", handler)
        self._handlers.requests[method] = handler

    def on_notification(self, method: str, handler: NotificationHandler) -> None:
        """Call `handler(params)` for each notification of this method, in order.

        The handler must return at once, because all reading waits for it: start a task of your own for longer work. Its
        exceptions are logged. Raises `TypeError` for a coroutine function.
        """
        check_instance("method", method, str)
        check_plain_function("handler", handler)
        self._handlers.notifications[method] = handler

    def on_unidentified_error(self, handler: Callable[[RemoteError], object]) -> None:
        """Call `handler(error)` for errors that name no request (their id is null).

        Without a handler they are logged as warnings of the logger `discreet.client`. If the server refuses a call for its
        size, that call fails instead.
        """
        check_plain_function("handler", handler)
        self._handlers.unidentified_error = handler

    async def send_raw(self, data: bytes) -> None:
        """Write bytes unchanged between two frames, to test how a server treats garbage.

        Returns when the server's input has taken them. Raises `ConnectionFailed`, and `RuntimeError` by HTTP.
        """
        connection = await self._connector.connection()
        await connection.send_raw(data)


def _check_options(
    method: str, timeout: float | None, service_params: Mapping[str, str] | None, errors: DeclaredErrors = ()
) -> None:
    check_instance("method", method, str)
    check_timeout(timeout)
    if service_params is not None:
        check_strings("service_params", service_params)
    if errors != ():
        check_errors(errors)


def _shorter(one: float | None, other: float | None) -> float | None:
    """The shorter of two time limits; None means no limit."""
    limits = [limit for limit in (one, other) if limit is not None]
    return min(limits, default=None)
