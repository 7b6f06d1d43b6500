"""Defines the Protocol of a recorder of spans. `--otel` loads the one of OpenTelemetry, `gateway/tracing`, by its name.

Without it there is no recorder, and each `span` is None. Code that tells a span something checks that first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol, TypeAlias

from ..errors.failures import Failure

TASK_STATE: Final = "discreet.task.state"
HTTP_STATUS: Final = "http.response.status_code"

BAGGAGE: Final = "baggage"
"""What the programs on the way of a request tell each other (W3C Baggage)."""

TRACE_MEMBERS: Final = {"traceparent": 256, "tracestate": 512, BAGGAGE: 8192}
"""The names under which a request carries its trace, and bytes of each. A longer one is dropped (W3C Trace Context, section
3.3.1.5; W3C Baggage, section 3.3.2)."""

_MAX_BAGGAGE_MEMBERS: Final = 64


def trace_members(carrier: Mapping[str, object]) -> dict[str, str]:
    """Return the members of a trace that may go on with a request. What is no line of printable ASCII is left out."""
    return {
        name: text
        for name, longest in TRACE_MEMBERS.items()
        if isinstance(text := carrier.get(name), str)
        and 0 < len(text) <= longest
        and text.isascii()
        and text.isprintable()
        and (name != BAGGAGE or text.count(",") < _MAX_BAGGAGE_MEMBERS)
    }


Origin: TypeAlias = Any
"""The span in which something was asked for that is done later, as the recorder knows it; None where there was none."""


class Span(Protocol):
    """One piece of work that is recorded. It ends once; what is told of it later is dropped. From any thread. Nothing raises."""

    @property
    def log_fields(self) -> Mapping[str, str]:
        """The fields of log lines that belong to the span."""
        ...

    def enter(self) -> None:
        """Make it the current span of the context variables that this runs in, for as long as they live."""

    def entered(self) -> AbstractContextManager[None]:
        """Make it the current span for a block."""
        ...

    def lead_to(self, target: str) -> None:
        """Say that the method only leads to an operation, which has this name."""

    def tell(self, name: str, value: str | int) -> None:
        """Add an attribute: a name of the program's, or a number of the daemon's own."""

    def record_error(self, error: Failure | str) -> None:
        """Say what has gone wrong: a failure as it is told to the caller, or a fault by the name of its class or a constant.
        Never the text of an exception. The first that is told has the name."""

    def end(self, error: Failure | str | None = None) -> None:
        """Say that the work is over; `error` is what has gone wrong."""


class Tracing(Protocol):
    """Starts spans: whose child each of them is, and what it is called. Used on the loop's thread."""

    def begin(self, name: str, version: str) -> None:
        """Record from now on, for a service of this name. Raises `AppError`, in one line for the operator."""

    def leave(self) -> None:
        """Stand outside of any span from now on, with all tasks that begin here."""

    def flush(self, seconds: float) -> None:
        """Have all that has ended exported, and wait for that, but not longer. Blocks."""

    def origin(self) -> Origin:
        """Return what is asked for here."""

    def traceparent_of(self, origin: Origin) -> str:
        """Return a text that names it to another daemon; empty where there is none."""
        ...

    def origin_of(self, traceparent: str) -> Origin:
        """Return what was asked for at another daemon."""
        ...

    def resume(self, origin: Origin) -> None:
        """Do for this one what happens from now on in these context variables."""

    def resumed(self, origin: Origin) -> AbstractContextManager[None]:
        """Do for this one what happens in a block."""
        ...

    def request(
        self,
        method: str | None,
        metadata: Mapping[str, str],
        *,
        meta: Mapping[str, object] | None = None,
        method_attribute: str | None = None,
        jsonrpc: bool = True,
    ) -> Span:
        """Start the span of a request or notification; `method` is None for one that the daemon does not have.

        It is done for what `meta` names, the member `_meta` of its params; else for the HTTP request that it is in, or for the
        span that is current; else for what `metadata` names. `jsonrpc` is False where it came in another form.
        """
        ...

    def inner_call(self, operation: str) -> Span:
        """Start the span of a call of another operation by the handler that runs here."""
        ...

    def execution(self, agent: str, task_id: str) -> Span:
        """Start the span of an agent's work on a task, for what was asked for here."""
        ...

    def commit(self, origins: Sequence[Origin]) -> Span:
        """Start the span of storing one change for each of these in a database."""
        ...

    def push(self, origin: Origin, *, attempt: int) -> tuple[Span, Mapping[str, str]]:
        """Start the span of an attempt to send a notification, the first one is 1. The headers name it. Where it goes is not
        told: a caller has chosen that."""
        ...

    def asking(self, method: str, method_attribute: str | None) -> AbstractContextManager[Mapping[str, str]]:
        """Record a block as a request to the client, for what runs here. Its value names it."""
        ...
