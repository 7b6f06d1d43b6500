"""Runs the program's handlers for the server's requests and notifications. Bounds what runs. Never reads.

Handlers belong to the endpoint and serve one connection after the other.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from inspect import isawaitable
from typing import Any, Final, TypeAlias, final

import msgspec
from anyio import CancelScope
from anyio.abc import TaskGroup
from msgspec import Raw

from ..errors.decoders import decoder_for
from ..errors.exceptions import FailureError, OperationError, failure_of
from ..errors.failures import Cancelled, Internal, MethodNotFound, ParseFailure
from ..errors.wire import encode_error_response
from .dialects import Dialect
from .errors import RemoteError
from .messages import DECODE_ERRORS, ServerNotification, ServerRequest, encode_result

LOGGER_NAME: Final = "discreet.client"

MAX_SERVER_REQUESTS: Final = 1024
"""Requests of the server that may run at once. A server that sends more is broken."""

MAX_OPEN_BYTES: Final = 64 * 1024 * 1024
"""Bytes of requests that run, and of replies that the server has not read. A single one may be larger."""

RequestHandler: TypeAlias = Callable[[Any], Awaitable[Any] | Any]  # JSON values in, anything that msgspec encodes out
NotificationHandler: TypeAlias = Callable[[Any], object]  # JSON values in


@final
class Handlers:
    """Handlers by method. A request without a handler is answered METHOD_NOT_FOUND.

    `unidentified_error` is called with errors that the server could not ascribe to a request. `garbage` is called with what is
    wrong with something that is no message; without it, all pending requests fail then, as any answer may have been lost.
    """

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.requests: dict[str, RequestHandler] = {}
        self.notifications: dict[str, NotificationHandler] = {}
        self.unidentified_error: Callable[[RemoteError], object] | None = None
        self.garbage: Callable[[str], object] | None = None

    def handle_notification(self, message: ServerNotification) -> None:
        """Call the method's handler. An exception of the handler is logged."""
        if handler := self.notifications.get(message.method):
            try:
                params = _decode_params(message.params)
            except FailureError:
                return  # JSON-RPC does not answer a notification, not even a broken one
            call_logged(f"the handler of {message.method}", partial(handler, params))


@final
class ServerRequests:
    """The requests of one server that are not answered yet, each in a task of its own.

    `reply` sends a reply; it may wait for the server to read. `overrun` is told why the connection must end.
    """

    def __init__(
        self,
        tasks: TaskGroup,
        handlers: Handlers,
        *,
        reply: Callable[[bytes], Awaitable[None]],
        overrun: Callable[[str], None],
    ) -> None:
        self._tasks = tasks
        self._handlers = handlers
        self._reply = reply
        self._overrun = overrun
        self._running: dict[bytes, CancelScope] = {}
        self._count = 0
        self._bytes = 0

    def start(self, request: ServerRequest) -> None:
        """Start the request's handler. Never waits."""
        handler = self._handlers.requests.get(request.method)
        if handler is None:  # it is refused by its id alone; what else it holds is freed
            request = ServerRequest(request.id, request.method, None, len(request.id))
        if self._count >= MAX_SERVER_REQUESTS:
            self._overrun(f"the server sent more than {MAX_SERVER_REQUESTS} requests at once")
        elif self._bytes and self._bytes + request.size > MAX_OPEN_BYTES:
            self._overrun(f"the server sent more than {MAX_OPEN_BYTES} bytes of requests at once")
        else:
            self._count += 1
            self._bytes += request.size
            self._running[request.id] = scope = CancelScope()
            self._tasks.start_soon(self._answer, request, handler, scope)

    def cancel(self, params: Raw | None) -> None:
        """Cancel the request that a notification of the server names."""
        try:
            members = decoder_for(dict[str, Raw])(params or b"")
        except DECODE_ERRORS:
            return
        if scope := self._running.get(bytes(members.get(self._handlers.dialect.cancel_member, b""))):
            scope.cancel()

    async def _answer(self, request: ServerRequest, handler: RequestHandler | None, scope: CancelScope) -> None:
        size = request.size
        try:
            reply = await self._outcome(request, handler, scope)
            self._bytes += len(reply) - size
            size = len(reply)
            if size < self._bytes > MAX_OPEN_BYTES:
                self._overrun(f"the server left more than {MAX_OPEN_BYTES} bytes of replies unread")
            await self._reply(reply)
        finally:
            self._count -= 1
            self._bytes -= size

    async def _outcome(self, request: ServerRequest, handler: RequestHandler | None, scope: CancelScope) -> bytes:
        """The body of the reply."""
        with scope:
            try:
                if handler is None:
                    return encode_error_response(request.id, MethodNotFound())
                result = handler(_decode_params(request.params))
                return encode_result(request.id, await result if isawaitable(result) else result)
            except OperationError as exc:
                return encode_error_response(request.id, failure_of(exc, (type(exc),)))
            except FailureError as exc:
                return encode_error_response(request.id, exc.failure)
            except Exception as exc:  # noqa: BLE001 - the boundary to foreign code: other calls must not suffer
                log("error", f"the handler of {request.method} failed", exc)
                return encode_error_response(request.id, Internal())
            finally:
                self._running.pop(request.id, None)
        return encode_error_response(request.id, Cancelled())


def call_logged(what: str, handler: Callable[[], object]) -> None:
    """Call a handler whose result nobody waits for. An exception is logged as a failure of `what`."""
    try:
        handler()
    except Exception as exc:  # noqa: BLE001 - the boundary to foreign code, as above
        log("error", f"{what} failed", exc)


def log(level: str, message: str, exc: Exception | None = None) -> None:
    """Log what no caller learns otherwise: calls raise their errors. Never what a message holds."""
    import logging  # late: most connections log nothing

    getattr(logging.getLogger(LOGGER_NAME), level)("%s", message, exc_info=exc)


def _decode_params(params: Raw | None) -> Any:  # JSON
    try:
        return None if params is None else msgspec.json.decode(params)
    except DECODE_ERRORS as exc:
        raise FailureError(ParseFailure("invalid-json")) from exc
