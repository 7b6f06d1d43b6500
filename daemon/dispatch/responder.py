"""Gives every request of one client its one answer, and logs why one failed. Runs nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, Protocol, final

from ...errors.codes import row_of
from ...errors.failures import Failure, Internal, InvalidParams, InvalidRequest, Overloaded
from ...framing.events import Fault, Framing
from ..logs import log
from ..memory import SMALL, MemoryBudget, map_large_blocks, reserve
from ..rpc import envelope
from ..rpc.dialect import Dialect, Events
from ..rpc.envelope import Call, Reply
from .request import BACKSLASH, EventSink, Inflight, Outcome, Request, RequestCounts, id_key

if TYPE_CHECKING:
    from ..tracing import Span


# What the log says of requests: one line per failure, at the level that the table gives it.


_OPENINGS: Final[tuple[tuple[bytes, str], ...]] = (
    (rb"\xef\xbb\xbf|\xff\xfe|\xfe\xff", "the input begins with a byte order mark: send UTF-8 without one"),
    (rb"[A-Z]+ \S+ HTTP/", "this is an HTTP request; what is read here is JSON-RPC on stdin"),
    (rb"(?i:content-[a-z]+:[^\r\n]*)\n", "header lines end in CR LF, and so does the empty line behind them"),
    (rb"(?i:content-[a-z]+):", "messages with headers need --framing content-length"),
    (
        rb'\s*\{[^\n]*"initialize"',
        "an initialize that is a line is that of MCP or ACP: --dialect mcp or acp; other lines need --framing newline",
    ),
    (rb"\s*[\[{]", "messages that are lines need --framing newline"),
)
"""What the input of a client begins with that framed not even its first message as is expected, and what to tell it."""


def note_failure(
    method: str | None,
    call_id: bytes | None,
    failure: Failure,
    shown: Failure | None,
    dialect: Dialect,
    *,
    diagnosed: bool = False,
    span: Span | None = None,
    task: str | None = None,
) -> None:
    """A call failed, or bytes were no call. `method` and `call_id` where they are known.

    `shown` is the failure that the client is told of in this dialect; None where it is told of none. What is `diagnosed` has a
    line in the log already, which says more. `span` is the record of the call, where one is kept. `task`
    is the agent's task that the call names.
    """
    row = row_of(failure)
    level = "debug" if diagnosed else row.log_level
    if not log.is_enabled_for(level):
        return
    fields: dict[str, object] = {"failure": row.protocol_code}
    if shown is not None and not isinstance(shown, dialect.unanswered):
        fields = {"code": row_of(shown).code_in(dialect.name), **fields}
    if method is not None:
        fields["method"] = method
    if call_id is not None and call_id != b"null":
        fields["id"] = call_id
    reason = getattr(failure, "reason", None)
    if reason is not None:
        fields["reason"] = reason
    if isinstance(failure, InvalidRequest) and failure.member is not None:
        fields["member"] = failure.member
    if isinstance(failure, InvalidParams):
        fields["param"] = failure.param
    task = getattr(failure, "task_id", None) or task
    if task is not None:
        fields["task"] = task
    if span is not None:
        fields.update(span.log_fields)
    log.record(level, "request.failed", fields)


def note_unanswered(call: Call) -> None:
    """A handler ended after its request was answered (cancelled, timed out); its outcome is dropped."""
    if log.is_enabled_for("debug"):
        log.debug("result.dropped", method=call.method, id=call.id)


def note_ignored(call: Call) -> None:
    """A notification that a server need not know."""
    log.debug("notification.ignored", method=call.method)


def note_overdue(call: Call, limit: float | None) -> None:
    """A handler in a worker thread runs on, although its caller has been told that its time is over."""
    log.warning("handler.overdue", method=call.method, id=call.id, seconds=limit)


def note_fault(fault: Fault, opening: bytes, framing: Framing | None) -> None:
    """Bytes were lost. The log says how many and where, never what they were. `opening` is what the input began with."""
    if log.is_enabled_for("warning"):
        code = row_of(fault.failure).code
        said = _hint(opening, framing) if fault.offset == 0 else ""
        hint = {"hint": said} if said else {}
        log.warning(
            "frame.dropped", code=code, reason=fault.failure.reason, size=fault.size, offset=fault.offset, **hint
        )


def _hint(opening: bytes, framing: Framing | None) -> str:
    import re  # late: only such clients need it

    for pattern, hint in _OPENINGS:
        if re.match(pattern, opening):
            return "" if hint.endswith(f"--framing {framing}") else hint
    return ""


def note_timeout(size: int) -> None:
    """A frame was not complete in time; `size` bytes of it had come."""
    log.warning("frame.timed_out", size=size)


def note_reply(reply: Reply) -> None:
    """A response to no request of ours."""
    if log.is_enabled_for("debug"):
        log.debug("response.unmatched", id=reply.id)


def note_dropped() -> None:
    """A notification with a broken envelope, or a malformed response. Neither has an answer."""
    log.warning("message.malformed")


class ReplyStream(EventSink, Protocol):
    """The events of one subscription on their way to the client, and at last its response."""

    def finish(self, response: bytes, on_answer: Callable[[], None]) -> None:
        """Queue the response behind all events; `on_answer()` is called when it is taken to be written."""
        ...

    def discard(self) -> None:
        """Drop the events that are still queued, and all that follow."""
        ...

    def take_until(self, number: int) -> None:
        """The client says that it has taken the events up to this number."""
        ...


class Output(Protocol):
    """The way to the client."""

    def post(self, *parts: bytes) -> None:
        """Queue one response, which may come in parts. Never blocks."""
        ...

    def fail(self, failure: Failure, body: bytes | None) -> None:
        """The same for one that tells of this failure; None where the client is told nothing."""
        ...

    def open_stream(
        self, encode: Callable[[int, bytes], bytes | None], service_params: Mapping[str, str]
    ) -> ReplyStream:
        """A way for the events of one subscription; `encode(number, value)` writes one as a message, None sends none. The service
        params are those of its request."""
        ...


@final
class Responder:
    """One per client, or per part of what it sends, which then share the table of those in flight. The `Requester` of all
    requests in it.
    """

    def __init__(
        self,
        output: Output,
        memory: MemoryBudget,
        dialect: Dialect,
        metrics: RequestCounts,
        inflight: Inflight[Request] | None = None,
    ) -> None:
        self._output = output
        self._metrics = metrics
        self._memory = memory
        self._dialect = dialect
        self.inflight: Final[Inflight[Request]] = Inflight() if inflight is None else inflight
        self._streams: dict[Request, tuple[ReplyStream, Events]] = {}

    @property
    def unanswered(self) -> int:
        """How many requests still wait for their answer."""
        return len(self.inflight)

    def in_flight(self, call_id: bytes) -> bool:
        """Whether a request of this id (a JSON text) waits for its answer."""
        return (id_key(call_id) if BACKSLASH in call_id else call_id) in self.inflight.waiting

    def find(self, call_id: bytes) -> Request | None:
        """The request of this id (a JSON text) that waits for its answer."""
        return self.inflight.find(id_key(call_id))

    # -- outcomes of requests that were admitted ---------------------------------------------------------------

    def deliver(self, request: Request, outcome: Outcome) -> None:
        """Answer the request, at once or behind the events of its subscription."""
        call, events = request.call, self._streams.pop(request, None)
        if isinstance(outcome, bytes) and len(outcome) > SMALL and call.id is not None:
            map_large_blocks()
            if not self._has_memory(request, outcome):
                outcome = Overloaded()
        self._metrics.ended(request, outcome)
        if call.id is None:
            return self.result(call, outcome) if isinstance(outcome, bytes) else self.fail(call, outcome)
        ended = request.ended_by is not None
        if not self.inflight.settle(request, hold=events is not None and not ended):
            return
        if events is not None and not ended:
            return self._finish_stream(request, call.id, *events, outcome)
        if isinstance(outcome, bytes):
            self.result(call, outcome)
        else:
            self.fail(call, outcome)
        if events is not None:
            events[0].discard()

    def _finish_stream(
        self, request: Request, call_id: bytes, stream: ReplyStream, events: Events, outcome: Outcome
    ) -> None:
        if isinstance(outcome, bytes):
            outcome = events.result(outcome)
        shown = _rendered(request.call, outcome)
        if isinstance(outcome, bytes):
            _end_span(request.call)
        else:
            self._note(request.call, outcome, shown)
        if isinstance(shown, bytes):
            response = envelope.encode_result(call_id, shown)
        else:
            response = self._dialect.encode_failure(call_id, shown, request.call.method)
        stream.finish(response, lambda: self.inflight.release(request))

    def _has_memory(self, request: Request, result: bytes) -> bool:
        """Whether a large result may wait for the client. That of a mutation always may: refused, it would be tried again."""
        return self._memory.fits(len(result)) or request.spec.kind != "query"

    def sink_of(self, request: Request) -> EventSink:
        events = self._dialect.events_of(request.call)
        stream = self._output.open_stream(events.encode, request.call.metadata)
        self._streams[request] = stream, events
        return stream

    def take_until(self, call_id: bytes, number: int) -> None:
        """The client says that it has taken the events of this request up to this number. Others are ignored."""
        request = self.find(call_id)
        if request is not None and request in self._streams:
            self._streams[request][0].take_until(number)

    # -- answers to everything else ----------------------------------------------------------------------------

    def result(self, call: Call, result: bytes) -> None:
        """Answer a call with the JSON text of its result; with INTERNAL where there is no memory for it."""
        if call.id is None:
            return _end_span(call)
        try:
            shown = result if call.rendering is None else _rendered(call, result)
            if isinstance(shown, bytes):
                if len(shown) > SMALL:
                    self._output.post(*envelope.result_parts(call.id, shown))
                else:
                    self._output.post(envelope.encode_result(call.id, shown))
                if call.span is not None:
                    call.span.end()
            else:
                self.error(call.id, shown, call.method)
                _end_span(call, shown)
        except MemoryError:
            reserve.free()
            self._note(call, Internal(), Internal())
            self.error(call.id, Internal(), call.method)

    def fail(self, call: Call, failure: Failure) -> None:
        """Answer a call that was never admitted with an error, and log it. Notifications are only logged."""
        if call.id is None:
            return self._note(call, failure)
        shown = _rendered(call, failure)
        self._note(call, failure, shown)
        if isinstance(shown, bytes):
            self._output.post(envelope.encode_result(call.id, shown))
        else:
            self.error(call.id, shown, call.method)

    def refuse_duplicate(self, call_id: bytes) -> None:
        """Answer a call whose id is still in flight."""
        self.refuse(call_id, InvalidRequest("duplicate-id"))

    def refuse(self, call_id: bytes, failure: Failure) -> None:
        """Answer what never became a call, and log it."""
        self._metrics.refused(None, failure)
        note_failure(None, call_id, failure, failure, self._dialect)
        self.error(call_id, failure)

    def fault(self, call_id: bytes) -> None:
        """Answer a call whose handling failed in the daemon's own code, which is in the log already."""
        request = self.find(call_id)
        if request is None:
            self._metrics.refused(None, Internal())
            self.error(call_id, Internal())
        else:
            request.end(Internal())

    def refuse_bytes(self, failure: Failure) -> None:
        """Answer bytes that were no message. They are in the log already."""
        self._metrics.refused(None, failure)
        self.error(envelope.NULL_ID, failure)

    def error(self, call_id: bytes, failure: Failure, method: str = "") -> None:
        """Send an error for something that is in the log already. `method` is empty where it is not known."""
        told = not isinstance(failure, self._dialect.unanswered)
        self._output.fail(failure, self._dialect.encode_failure(call_id, failure, method) if told else None)

    def _note(self, call: Call, failure: Failure, shown: Outcome | None = None) -> None:
        told = None if isinstance(shown, bytes) else shown
        said = call.method, call.id, failure, told, self._dialect
        note_failure(*said, diagnosed=call.diagnosed, span=call.span, task=call.task)
        _end_span(call, failure)


def _end_span(call: Call, failure: Failure | None = None) -> None:
    if call.span is not None:
        call.span.end(failure)


def _rendered(call: Call, outcome: Outcome) -> Outcome:
    """The outcome as the dialect's method writes it, where it stands in for the operation."""
    if call.rendering is None:
        return outcome
    try:
        if isinstance(outcome, bytes):
            return call.rendering.result(outcome)
        return call.rendering.failure(outcome) or outcome
    except MemoryError:
        raise
    except Exception as exc:  # noqa: BLE001 - a fault of our own must cost one answer, not the scheduler
        log.error("daemon.fault", id=call.id, exc=exc)
        return Internal()
