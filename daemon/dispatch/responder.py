"""Gives every request of one client its one answer, and logs why one failed. Runs nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, final

from ...errors.failures import Failure, Internal, InvalidRequest, Overloaded
from ...errors.wire import encode_error_response
from ..memory import SMALL, MemoryBudget, reserve
from ..process.allocator import map_large_blocks
from ..rpc import envelope
from ..rpc.envelope import Call
from ..rpc.inflight import Inflight, id_key
from ..rpc.request_log import note_failure
from .request import EventSink, Outcome, Request


class ReplyStream(EventSink, Protocol):
    """The events of one subscription on their way to the client, and at last its response."""

    def finish(self, response: bytes, on_answer: Callable[[], None]) -> None:
        """Queue the response behind all events; `on_answer()` is called when it is taken to be written."""
        ...

    def discard(self) -> None:
        """Drop the events that are still queued, and all that follow."""
        ...


class Output(Protocol):
    """The way to the client."""

    def post(self, body: bytes) -> None:
        """Queue one message. Never blocks."""
        ...

    def open_stream(self, call_id: bytes) -> ReplyStream: ...


@final
class Responder:
    """One per client. The `Requester` of all requests that it sends."""

    def __init__(self, output: Output, memory: MemoryBudget) -> None:
        self._output = output
        self._memory = memory
        self._inflight: Inflight[Request] = Inflight()
        self._streams: dict[Request, ReplyStream] = {}

    @property
    def unanswered(self) -> int:
        """How many requests still wait for their answer."""
        return len(self._inflight)

    def admit(self, request: Request) -> bool:
        """Expect one answer to this request; False when its id is still in flight (the first request stands)."""
        return self._inflight.admit(request)

    def in_flight(self, call_id: bytes) -> bool:
        """Whether a request of this id (a JSON text) waits for its answer."""
        return self._inflight.holds(call_id)

    def find(self, call_id: bytes) -> Request | None:
        """The request of this id (a JSON text) that waits for its answer."""
        return self._inflight.find(id_key(call_id))

    # -- outcomes of requests that were admitted ---------------------------------------------------------------

    def deliver(self, request: Request, outcome: Outcome) -> None:
        """Answer the request, at once or behind the events of its subscription."""
        call, stream = request.call, self._streams.pop(request, None)
        if call.id is None:
            if not isinstance(outcome, bytes):
                note_failure(call.method, None, outcome)
            return
        if isinstance(outcome, bytes) and len(outcome) > SMALL:
            map_large_blocks()
            if not self._has_memory(request, outcome):
                outcome = Overloaded()
        ended = request.ended_by is not None
        if not self._inflight.settle(request, hold=stream is not None and not ended):
            return
        if isinstance(outcome, bytes) and stream is None:
            return self.result(call, outcome)
        if isinstance(outcome, bytes):
            response = envelope.encode_result(call.id, outcome)
        else:
            note_failure(call.method, call.id, outcome)
            response = encode_error_response(call.id, outcome)
        if stream is None:
            self._output.post(response)
        elif ended:
            stream.discard()
            self._output.post(response)
        else:
            stream.finish(response, lambda: self._inflight.release(request))

    def _has_memory(self, request: Request, result: bytes) -> bool:
        """Whether a large result may wait for the client. That of a mutation always may: refused, it would be tried again."""
        return self._memory.fits(len(result)) or request.spec.kind != "query"

    def sink_of(self, request: Request) -> EventSink:
        stream = self._output.open_stream(request.call.id or envelope.NULL_ID)
        self._streams[request] = stream
        return stream

    # -- answers to everything else ----------------------------------------------------------------------------

    def result(self, call: Call, result: bytes) -> None:
        """Answer a call with the JSON text of its result; with INTERNAL where there is no memory for it."""
        if call.id is None:
            return
        try:
            self._output.post(envelope.encode_result(call.id, result))
        except MemoryError:
            reserve.free()
            note_failure(call.method, call.id, Internal())
            self.error(call.id, Internal())

    def fail(self, call: Call, failure: Failure) -> None:
        """Answer a call that was never admitted with an error, and log it. Notifications are only logged."""
        note_failure(call.method, call.id, failure)
        if call.id is not None:
            self.error(call.id, failure)

    def refuse_duplicate(self, call_id: bytes) -> None:
        """Answer a call whose id is still in flight."""
        self.refuse(call_id, InvalidRequest("duplicate-id"))

    def refuse(self, call_id: bytes, failure: Failure) -> None:
        """Answer what never became a call, and log it."""
        note_failure(None, call_id, failure)
        self.error(call_id, failure)

    def fault(self, call_id: bytes) -> None:
        """Answer a call whose handling failed in the daemon's own code, which is in the log already."""
        request = self._inflight.find(call_id)
        if request is None:
            self.error(call_id, Internal())
        else:
            request.end(Internal())

    def error(self, call_id: bytes, failure: Failure) -> None:
        """Send an error for something that is in the log already."""
        self._output.post(encode_error_response(call_id, failure))
