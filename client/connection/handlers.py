"""Runs the program's handlers for the server's requests and notifications. Sends nothing itself.

Handlers belong to the endpoint and serve one connection after the other.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from inspect import isawaitable
from typing import Any, Protocol, TypeAlias, final

import msgspec
from anyio import CancelScope
from msgspec import Raw

from ...errors.decoders import decoder_for
from ...errors.exceptions import FailureError, OperationError
from ...errors.failures import Cancelled, Internal, MethodNotFound, ParseFailure
from ...errors.wire import encode_error_response, failure_of
from ..errors import RemoteError
from ..messages import DECODE_ERRORS, ServerNotification, ServerRequest, encode_result
from . import log
from .progress import ProgressDialect
from .trace_headers import TracePlace

RequestHandler: TypeAlias = Callable[[Any], Awaitable[Any] | Any]  # JSON values in, anything that msgspec encodes out
NotificationHandler: TypeAlias = Callable[[Any], object]  # JSON values in


class WireDialect(ProgressDialect, Protocol):
    """The part of a `Dialect` that a running connection needs; its docstring explains the attributes."""

    @property
    def cancel(self) -> str: ...

    @property
    def cancel_member(self) -> str: ...

    @property
    def progress(self) -> str: ...

    @property
    def a2a(self) -> bool: ...

    @property
    def trace(self) -> TracePlace | None: ...

    def cancellation(self, request_id: int) -> bytes: ...


@final
class Handlers:
    """Handlers by method. A request without a handler is answered METHOD_NOT_FOUND.

    `unidentified_error` is called with errors that the server could not ascribe to a request.
    """

    def __init__(self, dialect: WireDialect) -> None:
        self.dialect = dialect
        self.requests: dict[str, RequestHandler] = {}
        self.notifications: dict[str, NotificationHandler] = {}
        self.unidentified_error: Callable[[RemoteError], object] | None = None
        self._running: dict[bytes, CancelScope] = {}

    def handle_notification(self, message: ServerNotification) -> None:
        """Call the method's handler. An exception of the handler is logged."""
        if message.method == self.dialect.cancel:
            self._cancel(message.params)
        elif handler := self.notifications.get(message.method):
            try:
                params = _decode_params(message.params)
            except FailureError:
                return  # JSON-RPC does not answer a notification, not even a broken one
            call_logged(f"the handler of {message.method}", partial(handler, params))

    def register(self, request: ServerRequest) -> CancelScope:
        """Let the server cancel a request from now on. Pass the scope to `answer`."""
        self._running[request.id] = scope = CancelScope()
        return scope

    async def answer(self, request: ServerRequest, scope: CancelScope) -> bytes:
        """Run the request's handler and return the body of the reply.

        `OperationError` and `FailureError` become error replies. Any other exception of the handler is logged, and the
        server gets INTERNAL.
        """
        with scope:
            try:
                handler = self.requests.get(request.method)
                if handler is None:
                    return encode_error_response(request.id, MethodNotFound())
                result = handler(_decode_params(request.params))
                return encode_result(request.id, await result if isawaitable(result) else result)
            except OperationError as exc:
                return encode_error_response(request.id, failure_of(exc, (type(exc),)))
            except FailureError as exc:
                return encode_error_response(request.id, exc.failure)
            except Exception as exc:  # noqa: BLE001 - the boundary to foreign code: other calls must not suffer
                log.exception(f"the handler of {request.method}", exc)
                return encode_error_response(request.id, Internal())
            finally:
                self._running.pop(request.id, None)
        return encode_error_response(request.id, Cancelled())

    def _cancel(self, params: Raw | None) -> None:
        try:
            members = decoder_for(dict[str, Raw])(params or b"")
        except DECODE_ERRORS:
            return
        request_id = bytes(members.get(self.dialect.cancel_member, b""))
        if scope := self._running.get(request_id):
            scope.cancel()


def call_logged(what: str, handler: Callable[[], object]) -> None:
    """Call a handler whose result nobody waits for. An exception is logged as a failure of `what`."""
    try:
        handler()
    except Exception as exc:  # noqa: BLE001 - the boundary to foreign code, as above
        log.exception(what, exc)


def _decode_params(params: Raw | None) -> Any:  # JSON
    try:
        return None if params is None else msgspec.json.decode(params)
    except DECODE_ERRORS as exc:
        raise FailureError(ParseFailure("invalid-json")) from exc
