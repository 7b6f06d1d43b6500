"""What a message from the server means: an answer, an event, an error for nobody, a question. No IO, no waiting."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, assert_never, final

import msgspec
from msgspec import Raw

from ...errors import failures as facts
from ...errors.wire import encode_error
from .. import log, messages
from ..errors import ClientError, InvalidReply, OperationTypeMismatch, RemoteError, remote_error
from .handlers import Handlers, guarded
from .pending import Awaited, Pending, PendingCall, PendingStream

_NO_CALL: Final = encode_error(facts.OperationTypeMismatch())
"""What the daemon itself says of a wrong kind, where it knows: here an event came for a call, or a result for a stream."""


@final
class Incoming:
    """Brings what the server says to those who wait for it.

    `post` queues a message to the server, `begin` starts the work on one of its requests; neither may wait.
    """

    def __init__(
        self,
        pending: Pending,
        served: Handlers,
        *,
        post: Callable[[bytes], None],
        begin: Callable[[messages.ServerRequest], None],
    ) -> None:
        self._pending = pending
        self._served = served
        self._post = post
        self._begin = begin

    def take(self, body: bytes) -> bool:
        """Act on one message; False when it is no JSON text."""
        try:
            message = messages.decode(body)
        except messages.UNREADABLE:
            return False
        match message:
            case messages.Reply():
                self._take_reply(message)
            case messages.ServerNotification(messages.STREAM_EVENT, params):
                self._take_event(params)
            case messages.ServerNotification():
                self._served.notify(message)
            case messages.ServerRequest():
                self._begin(message)
            case messages.Malformed(int(call_id)):
                self._fail(self._pending.find(call_id), "the server's message is neither a result nor an error")
            case messages.Malformed():
                self.fail_all("the server wrote JSON that is no message")
            case _:
                assert_never(message)
        return True

    def fail_all(self, why: str) -> None:
        """Any answer may have been lost. Nobody waits for the others any more, so the server need not go on."""
        for awaited in self._pending:
            self._fail(awaited, why)
            self._post(self._served.dialect.cancellation(awaited.id))

    def _take_reply(self, reply: messages.Reply) -> None:
        if reply.id is None:
            self._take_unidentified(reply.error or Raw(b"null"))
            return
        awaited = self._pending.find(reply.id)
        self._pending.remove(reply.id)
        match awaited:
            case None:  # it was cancelled or timed out, or this side never asked
                log.mention("the server answered a request that nobody waits for")
            case _ if reply.error is not None:
                awaited.fail(partial(remote_error, reply.error, awaited.errors, a2a=self._served.dialect.a2a))
            case PendingCall() if reply.result is not None:
                awaited.settle(reply.result)
            case PendingStream() if (end := _completion(reply.result)) is not None:
                awaited.complete(end.events)
            case PendingStream() if reply.result is not None and awaited.untouched:
                awaited.fail(partial(_not_a_stream, reply.result))
            case _:
                self._fail(awaited, "the server's answer is no end of a stream")

    def _take_unidentified(self, error: Raw) -> None:
        """An error without an id. What this side writes is well-formed, so that one reason is left: its size.

        If any of the waiting requests was too large, then the largest was.
        """
        failed = remote_error(error)
        too_large = isinstance(failed, RemoteError) and failed.failure == facts.InvalidRequest("oversize")
        if too_large and (largest := self._pending.largest()) is not None:
            self._pending.remove(largest.id)
            largest.fail(partial(remote_error, error))
        elif self._served.unidentified is not None and isinstance(failed, RemoteError):
            guarded("the handler of unidentified errors", partial(self._served.unidentified, failed))
        else:
            log.warn(f"the server reports an error and not of which request: {failed}")

    def _take_event(self, params: Raw | None) -> None:
        try:
            event = msgspec.json.decode(params or b"", type=messages.StreamEvent)
        except messages.UNREADABLE:
            self.fail_all("the server sent a malformed stream event")
            return
        awaited = self._pending.find(event.id)
        match awaited:
            case PendingStream():
                if not awaited.abandoned:
                    awaited.push(event.seq, event.value)
                if not (awaited.abandoned or awaited.answered):
                    return
            case PendingCall():
                awaited.fail(partial(remote_error, _NO_CALL))
            case None:  # its consumer has gone
                return
        self._pending.remove(awaited.id)
        self._post(self._served.dialect.cancellation(awaited.id))

    def _fail(self, awaited: Awaited | None, why: str) -> None:
        if awaited is not None:
            self._pending.remove(awaited.id)
            awaited.fail(partial(InvalidReply, why))


def _not_a_stream(result: Raw) -> ClientError:
    mismatch = remote_error(_NO_CALL)
    if isinstance(mismatch, OperationTypeMismatch):
        mismatch.result = result
    return mismatch


def _completion(result: Raw | None) -> messages.Completion | None:
    try:
        end = msgspec.json.decode(result or b"", type=messages.Completion)
    except messages.UNREADABLE:
        return None
    return end if end.completed else None
