"""Interprets the server's messages and passes each on: to a pending request, a handler of the program, or the log.

Handlers belong to the endpoint and serve one connection after the other. What runs of them is bounded. Nothing here reads or
waits.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from inspect import isawaitable
from typing import Any, Final, TypeAlias, assert_never, final

import msgspec
from anyio import CancelScope
from anyio.abc import TaskGroup
from msgspec import Raw

from ..errors import failures
from ..errors.decoders import decoder_for
from ..errors.exceptions import FailureError, OperationError, failure_of
from ..errors.failures import Cancelled, Internal, MethodNotFound, ParseFailure
from ..errors.wire import encode_error_response
from . import messages
from .dialects import Dialect
from .errors import InvalidReply, RemoteError, is_agent_method, remote_error, type_mismatch
from .messages import DECODE_ERRORS, ServerNotification, ServerRequest, encode_result
from .pending import SUBSCRIBE, PendingCall, PendingRequest, PendingRequests, PendingStream, read_progress

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
    `any_request` returns the whole reply to a request without a handler, `any_notification` takes such a notification; their
    params are JSON texts.
    """

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.requests: dict[str, RequestHandler] = {}
        self.notifications: dict[str, NotificationHandler] = {}
        self.unidentified_error: Callable[[RemoteError], object] | None = None
        self.garbage: Callable[[str], object] | None = None
        self.any_request: Callable[[ServerRequest], Awaitable[bytes]] | None = None
        self.any_notification: Callable[[ServerNotification], object] | None = None

    def handle_notification(self, message: ServerNotification) -> None:
        """Call the method's handler. An exception of the handler is logged."""
        if handler := self.notifications.get(message.method):
            try:
                params = _decode_params(message.params)
            except FailureError:
                return  # JSON-RPC does not answer a notification, not even a broken one
            call_logged(f"the handler of {message.method}", partial(handler, params))
        elif self.any_notification is not None:
            call_logged("the handler of notifications", partial(self.any_notification, message))


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
        if (
            handler is None and self._handlers.any_request is None
        ):  # it is refused by its id alone; what else it holds is freed
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

    def cancel(self, params: Raw | None) -> bool:
        """Cancel the request that a notification of the server names; False where it names none."""
        try:
            members = decoder_for(dict[str, Raw])(params or b"")
        except DECODE_ERRORS:
            return False
        scope = self._running.get(bytes(members.get(self._handlers.dialect.cancel_member, b"")))
        if scope is not None:
            scope.cancel()
        return scope is not None

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
                if handler is None and self._handlers.any_request is not None:
                    return await self._handlers.any_request(request)
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
    """Call a handler and drop its result. An exception is logged as a failure of `what`."""
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


MAX_WARNINGS: Final = 10
"""How many errors that name no request are logged for one connection. A server may write them without end."""


@final
class IncomingMessages:
    """Passes on what the server sends. `post` queues a message to the server and never waits."""

    def __init__(
        self,
        pending: PendingRequests,
        handlers: Handlers,
        *,
        server_requests: ServerRequests,
        post: Callable[[bytes], None],
    ) -> None:
        self._pending = pending
        self._handlers = handlers
        self._post = post
        self._server_requests = server_requests
        self._warnings = 0

    def handle(self, body: bytes) -> bool:
        """Act on one message, or on each of a batch (JSON-RPC 2.0 section 6). False when it is no JSON text."""
        try:
            if body.startswith(b"[") and (batch := decoder_for(list[Raw])(body)):
                for each in batch:
                    self._act(messages.decode_message(bytes(each)))
            else:
                self._act(messages.decode_message(body))
        except messages.DECODE_ERRORS:
            return False
        return True

    def _act(self, message: messages.ServerMessage) -> None:
        dialect = self._handlers.dialect
        match message:
            case messages.Response():
                self._handle_response(message)
            case messages.ServerNotification(messages.STREAM_EVENT, params):
                self._handle_event(params)
            case messages.ServerNotification(dialect.progress, params) if self._tell_progress(params):
                pass
            case messages.ServerNotification(dialect.cancel, params) if self._server_requests.cancel(params):
                pass
            case messages.ServerNotification():
                self._handlers.handle_notification(message)
            case messages.ServerRequest() if (request := self._echoed(message)) is not None:
                self._fail(request, "the server sent the request back, which is no response of JSON-RPC")
            case messages.ServerRequest():
                self._server_requests.start(message)
            case messages.InvalidMessage(int(request_id)):
                self._fail(self._pending.find(request_id), "the server's message is neither a result nor an error")
            case messages.InvalidMessage():
                self.take_garbage("the server wrote JSON that is no message")
            case _:
                assert_never(message)

    def _echoed(self, message: ServerRequest) -> PendingRequest | None:
        """Return the request of this side that a program such as `cat` has sent back. A server asks nothing like it: it would
        ask for a method of its own, which this side does not have, unless it takes any."""
        request = self._pending.find(messages.own_id(message.id) or messages.UNKNOWN_ID)
        if request is None or message.method in self._handlers.requests or self._handlers.any_request is not None:
            return None
        return request if message.method in (request.method, SUBSCRIBE) else None

    def take_garbage(self, reason: str) -> None:
        """The server wrote what is no message: an answer may be lost, unless such a server is known to write other things."""
        if self._handlers.garbage is None:
            self.fail_all(reason)
        else:
            call_logged("the handler of garbage", partial(self._handlers.garbage, reason))

    def fail_all(self, reason: str) -> None:
        """Fail every pending request with `InvalidReply`, because any answer may have been lost, and cancel it."""
        for request in self._pending:
            self._fail(request, reason)
            self._post(self._handlers.dialect.cancellation(request.id))

    def _handle_response(self, response: messages.Response) -> None:
        if response.id is None:
            self._handle_unidentified_error(response.error or Raw(b"null"))
            return
        match request := self._pending.remove(response.id):
            case None:  # it was cancelled or timed out, or this side never sent it
                log("debug", "the server answered a request without a waiting caller")
            case _ if response.error is not None:
                a2a = self._handlers.dialect.a2a and is_agent_method(request.method)
                request.fail(partial(remote_error, response.error, request.errors, a2a=a2a))
            case PendingCall() if response.result is not None:
                request.set_result(response.result)
            case PendingStream() if (end := _stream_end(response.result)) is not None:
                request.complete(end.events)
            case PendingStream() if response.result is not None and request.received == 0:
                request.fail(partial(type_mismatch, response.result))
            case _:
                self._fail(request, "the server's answer does not end a stream")

    def _handle_unidentified_error(self, error: Raw) -> None:
        """An error without an id. What this side writes is well-formed, so the server can only object to its size."""
        exc = remote_error(error, a2a=False)
        too_large = isinstance(exc, RemoteError) and exc.failure == failures.InvalidRequest("oversize")
        if too_large and (request := self._pending.oversized()) is not None:
            self._pending.remove(request.id)
            request.fail(partial(remote_error, error))
        elif self._handlers.unidentified_error is not None and isinstance(exc, RemoteError):
            call_logged("the handler of unidentified errors", partial(self._handlers.unidentified_error, exc))
        elif self._warnings < MAX_WARNINGS:
            self._warnings += 1
            log("warning", f"the server sent an error that names no request: {exc}")

    def _handle_event(self, params: Raw | None) -> None:
        try:
            event = decoder_for(messages.StreamEvent)(params or b"")
        except messages.DECODE_ERRORS:
            self._fail_streams(params)
            return
        request = self._pending.find(event.id)
        match request:
            case PendingStream():
                if not request.abandoned:
                    request.push(event.seq, event.value)
                if not (request.abandoned or request.done):
                    return
            case PendingCall():
                request.fail(type_mismatch)
            case None:  # its consumer has left
                return
        self._pending.remove(request.id)
        self._post(self._handlers.dialect.cancellation(request.id))

    def _fail_streams(self, params: Raw | None) -> None:
        """An event was lost: of the stream that it names, else perhaps of any. Calls go on: events answer none."""
        try:
            named = self._pending.find(decoder_for(messages.EventId)(params or b"").id)
        except messages.DECODE_ERRORS:
            named = None
        for request in [*self._pending] if named is None else [named]:
            if isinstance(request, PendingStream):
                self._fail(request, "the server sent a malformed stream event")
                self._post(self._handlers.dialect.cancellation(request.id))

    def _tell_progress(self, params: Raw | None) -> bool:
        """Whether this is the progress of a pending call that asked for it with `on_progress`."""
        progress = read_progress(params, self._handlers.dialect)
        match self._pending.find(progress.request_id) if progress else None:
            case PendingCall(on_progress=handler) if progress and handler:
                call_logged("the handler of on_progress", partial(handler, progress.value))
                return True
            case _:
                return False

    def _fail(self, request: PendingRequest | None, reason: str) -> None:
        if request is not None:
            self._pending.remove(request.id)
            request.fail(partial(InvalidReply, reason))


def _stream_end(result: Raw | None) -> messages.StreamEnd | None:
    try:
        end = decoder_for(messages.StreamEnd)(result or b"")
    except messages.DECODE_ERRORS:
        return None
    return end if end.completed else None
