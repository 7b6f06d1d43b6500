"""Interprets the server's messages and passes each on: to a pending request, a handler, or the log. No IO, no waiting."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, assert_never, final

from msgspec import Raw

from ..errors import failures
from ..errors.decoders import decoder_for
from . import messages
from .error_replies import is_agent_method, remote_error, type_mismatch
from .errors import InvalidReply, RemoteError
from .handlers import Handlers, ServerRequests, call_logged, log
from .pending import PendingCall, PendingRequest, PendingRequests, PendingStream
from .request import read_progress

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
                    self._act(messages.decode_message(bytes(each)), bytes(each))
            else:
                self._act(messages.decode_message(body), body)
        except messages.DECODE_ERRORS:
            return False
        return True

    def _act(self, message: messages.ServerMessage, body: bytes) -> None:
        dialect = self._handlers.dialect
        match message:
            case messages.Response():
                self._handle_response(message)
            case messages.ServerNotification(messages.STREAM_EVENT, params):
                self._handle_event(params)
            case messages.ServerNotification(dialect.progress, params) if self._tell_progress(params):
                pass
            case messages.ServerNotification(dialect.cancel, params):
                self._server_requests.cancel(params)
            case messages.ServerNotification():
                self._handlers.handle_notification(message)
            case messages.ServerRequest() if echoed := self._echoed(message, body):
                self._fail(echoed, "the server sends this side's own requests back: it is no server")
            case messages.ServerRequest():
                self._server_requests.start(message)
            case messages.InvalidMessage(int(request_id)):
                self._fail(self._pending.find(request_id), "the server's message is neither a result nor an error")
            case messages.InvalidMessage():
                self.take_garbage("the server wrote JSON that is no message")
            case _:
                assert_never(message)

    def _echoed(self, request: messages.ServerRequest, body: bytes) -> PendingRequest | None:
        """The pending request that this is, byte for byte. A method with a handler is one that the server may ask as well."""
        if request.method in self._handlers.requests or not request.id.isdigit():
            return None
        pending = self._pending.find(int(request.id))
        return pending if pending and pending.fingerprint == hash(body) else None

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
                log("debug", "the server answered a request that nobody waits for")
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
        """An error without an id. What this side writes is well-formed, so the server can only object to its size.

        If any of the pending requests was too large, then the largest one was.
        """
        exc = remote_error(error, a2a=False)
        too_large = isinstance(exc, RemoteError) and exc.failure == failures.InvalidRequest("oversize")
        if too_large and (largest := self._pending.largest()) is not None:
            self._pending.remove(largest.id)
            largest.fail(partial(remote_error, error))
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
