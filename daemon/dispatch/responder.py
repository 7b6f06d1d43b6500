"""Gives every request of one client its one answer, and logs why one failed. Runs nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, Protocol, final

from ...errors.codes import row_of
from ...errors.failures import Failure, Internal, InvalidParams, InvalidRequest, Overloaded
from ..logs import log
from ..memory import SMALL, MemoryBudget, map_large_blocks, reserve
from ..operations.request import BACKSLASH, EventSink, Outcome, Request, id_key
from ..rpc import envelope
from ..rpc.dialect import Dialect, Events
from .metrics import RequestMetrics

if TYPE_CHECKING:
    from ..tracing import Span


# What the log says of requests: one line per failure, at the level that the table gives it.


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
    fields.update(facts_of(failure))
    task = getattr(failure, "task_id", None) or task
    if task is not None:
        fields["task"] = task
    if span is not None:
        fields.update(span.log_fields)
    log.record(level, "request.failed", fields)


def facts_of(failure: Failure) -> dict[str, object]:
    """Return the fields of a log line that say what was wrong."""
    facts: dict[str, object] = {}
    reason = getattr(failure, "reason", None)
    if reason is not None:
        facts["reason"] = reason
    if isinstance(failure, InvalidRequest) and failure.member is not None:
        facts["member"] = failure.member
    if isinstance(failure, InvalidParams):
        facts["param"] = failure.param
    return facts


class ResponseStream(EventSink, Protocol):
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
        """Encode this failure as the response; None if the client is told nothing."""
        ...

    def open_stream(
        self, encode: Callable[[int, bytes], bytes | None], service_params: Mapping[str, str]
    ) -> ResponseStream:
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
        metrics: RequestMetrics,
        waiting: dict[bytes, Request] | None = None,
    ) -> None:
        self._output = output
        self._metrics = metrics
        self._memory = memory
        self._dialect = dialect
        self.waiting: Final[dict[bytes, Request]] = {} if waiting is None else waiting
        """The requests in flight by the keys of their ids, from the moment they are admitted until they are answered."""
        self._streams: dict[Request, tuple[ResponseStream, Events]] = {}

    def find(self, call_id: bytes) -> Request | None:
        """The request of this id (a JSON text) that waits for its response."""
        return self.waiting.get(id_key(call_id) if BACKSLASH in call_id else call_id)

    # -- outcomes of requests that were admitted ---------------------------------------------------------------

    def deliver(self, request: Request, outcome: Outcome) -> None:
        """Answer the request, at once or behind the events of its subscription. The first outcome is told, and no other."""
        events = self._streams.pop(request, None)
        if isinstance(outcome, bytes) and len(outcome) > SMALL and request.id is not None:
            map_large_blocks()
            if not self._has_memory(request, outcome):
                outcome = Overloaded()
        self._metrics.ended(request, outcome)
        if request.id is not None:
            if request.answered:
                return
            request.answered = True
            if events is not None and request.ended_by is None:
                return self._finish_stream(request, request.id, *events, outcome)
            del self.waiting[request.key]
        if isinstance(outcome, bytes):
            self.result(request, outcome)
        else:
            self.fail(request, outcome)
        if events is not None:
            events[0].discard()

    def _finish_stream(
        self, request: Request, call_id: bytes, stream: ResponseStream, events: Events, outcome: Outcome
    ) -> None:
        """The id stays in flight until the response has left."""
        if isinstance(outcome, bytes):
            outcome = events.result(outcome)
        shown = _rendered(request, outcome)
        if isinstance(outcome, bytes):
            _end_span(request)
        else:
            self._note(request, outcome, shown)
        if isinstance(shown, bytes):
            response = envelope.encode_result(call_id, shown)
        else:
            response = self._dialect.encode_failure(call_id, shown, request.method)
        stream.finish(response, lambda: self.waiting.__delitem__(request.key))

    def _has_memory(self, request: Request, result: bytes) -> bool:
        """Whether a large result may wait for the client. That of a mutation always may: refused, it would be tried again."""
        return self._memory.fits(len(result)) or request.spec.kind != "query"

    def sink_of(self, request: Request) -> EventSink:
        events = self._dialect.events_of(request)
        stream = self._output.open_stream(events.encode, request.metadata)
        self._streams[request] = stream, events
        return stream

    def take_until(self, call_id: bytes, number: int) -> None:
        """The client says that it has taken the events of this request up to this number. Others are ignored."""
        request = self.find(call_id)
        if request is not None and request in self._streams:
            self._streams[request][0].take_until(number)

    # -- answers to everything else ----------------------------------------------------------------------------

    def result(self, request: Request, result: bytes) -> None:
        """Answer a request with the JSON text of its result; with INTERNAL where there is no memory for it."""
        if request.id is None:
            return _end_span(request)
        try:
            shown = result if request.rendering is None else _rendered(request, result)
            if isinstance(shown, bytes):
                if len(shown) > SMALL:
                    self._output.post(*envelope.result_parts(request.id, shown))
                else:
                    self._output.post(envelope.encode_result(request.id, shown))
                if request.span is not None:
                    request.span.end()
            else:
                self.error(request.id, shown, request.method)
                _end_span(request, shown)
        except MemoryError:
            reserve.free()
            self._note(request, Internal(), Internal())
            self.error(request.id, Internal(), request.method)

    def fail(self, request: Request, failure: Failure) -> None:
        """Answer a request that was never admitted with an error, and log it. Notifications are only logged."""
        if request.id is None:
            return self._note(request, failure)
        shown = _rendered(request, failure)
        self._note(request, failure, shown)
        if isinstance(shown, bytes):
            self._output.post(envelope.encode_result(request.id, shown))
        else:
            self.error(request.id, shown, request.method)

    def refuse(self, call_id: bytes, failure: Failure) -> None:
        """Answer what never became a request, and log it."""
        self._metrics.refused(None, failure)
        note_failure(None, call_id, failure, failure, self._dialect)
        self.error(call_id, failure)

    def fault(self, call_id: bytes) -> None:
        """Answer a request whose handling failed in the daemon's own code, which is in the log already."""
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

    def _note(self, request: Request, failure: Failure, shown: Outcome | None = None) -> None:
        told = None if isinstance(shown, bytes) else shown
        said = request.method, request.id, failure, told, self._dialect
        note_failure(*said, diagnosed=request.diagnosed, span=request.span, task=request.task)
        _end_span(request, failure)


def _end_span(request: Request, failure: Failure | None = None) -> None:
    if request.span is not None:
        request.span.end(failure)


def _rendered(request: Request, outcome: Outcome) -> Outcome:
    """The outcome as the dialect's method writes it, where it stands in for the operation."""
    if request.rendering is None:
        return outcome
    try:
        if isinstance(outcome, bytes):
            return request.rendering.result(outcome)
        return request.rendering.failure(outcome) or outcome
    except MemoryError:
        raise
    except Exception as exc:  # noqa: BLE001 - a fault of our own must cost one answer, not the scheduler
        log.error("daemon.fault", id=request.id, exc=exc)
        return Internal()
