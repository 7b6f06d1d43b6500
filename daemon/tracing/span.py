"""One piece of work that is recorded: what may be told of it, and how it ends. Starts none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import final

from opentelemetry import trace
from opentelemetry.context import Context, attach, detach
from opentelemetry.trace import StatusCode

from ...errors.failures import Failure
from .attributes import ERROR_TYPE, Attributes, is_fault, of_failure, of_target
from .problems import note_fault


@final
class Span:
    """It ends once; what is told of it later is dropped. From any thread. Nothing here raises.

    `base` is the context that it was started in. `method` is how the caller has named the work. Where it is `held`, only `close`
    ends it: that of an HTTP request lasts longer than the call in it.
    """

    __slots__ = ("_base", "_blamed", "_closed", "_ended", "_held", "_method", "_recorded", "_span", "_tell")

    def __init__(self, span: trace.Span, base: Context, method: str = "", *, held: bool = False) -> None:
        self._span = span
        self._tell: Callable[[Attributes], None] = getattr(span, "tell", span.set_attributes)  # ours checks nothing
        self._base = base
        self._method = method
        self._held = held
        self._recorded = span.is_recording()
        self._blamed = self._ended = self._closed = False

    @property
    def context(self) -> Context:
        """The context in which it is the current span."""
        return trace.set_span_in_context(self._span, self._base)

    def enter(self) -> None:
        """Make it the current span of the context variables that this runs in, for as long as they live."""
        attach(self.context)

    @contextmanager
    def entered(self) -> Iterator[None]:
        """The same for the block."""
        token = attach(self.context)
        try:
            yield
        finally:
            detach(token)

    def lead_to(self, target: str) -> None:
        """The method only leads to an operation, which has this name."""
        if self._recorded:
            self._span.update_name(f"{self._method} {target}")
            self._tell(of_target(self._method, target))

    def tell(self, name: str, value: str | int) -> None:
        """Add an attribute."""
        if self._recorded and not self._closed:
            self._tell({name: value})

    def record_error(self, error: Failure | str) -> None:
        """What has gone wrong: a failure as it is told to the caller, or a fault by the name of its class or a constant. Never
        the text of an exception. The first that is told has the name."""
        if not self._recorded or self._closed:
            return
        if not self._blamed:
            self._blamed = True
            self._tell({ERROR_TYPE: error} if isinstance(error, str) else of_failure(error))
        if isinstance(error, str) or is_fault(error):
            self._span.set_status(StatusCode.ERROR)

    def end(self, error: Failure | str | None = None) -> None:
        """The work is over; `error` is what has gone wrong."""
        if self._ended:
            return
        self._ended = True
        if not self._held:
            self.close(error)
        elif error is not None:
            self.record_error(error)

    def close(self, error: Failure | str | None = None, told: Attributes | None = None) -> None:
        """The same, also where it is held. `told` are its last attributes."""
        if self._closed:
            return
        if told is not None and self._recorded:
            self._tell(told)
        if error is not None:
            self.record_error(error)
        self._closed = True
        try:
            self._span.end()
        except Exception as exc:  # noqa: BLE001 - a processor of the program's own must not cost an answer
            note_fault(exc)

    @property
    def log_fields(self) -> Mapping[str, str]:
        """What a line of the log says of it."""
        return log_fields(self._span)


def log_fields(span: trace.Span) -> Mapping[str, str]:
    """What a line of the log says that belongs to this span; nothing for one that is none."""
    context = span.get_span_context()
    if not context.is_valid:
        return {}
    return {"trace_id": trace.format_trace_id(context.trace_id), "span_id": trace.format_span_id(context.span_id)}
