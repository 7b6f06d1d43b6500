"""Counts the requests of one POST as all are counted, and puts them down among the caller's last ones."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from ...daemon.dispatch.request import Outcome, Request, RequestMetrics
    from ...daemon.operations.spec import OperationSpec
    from ...errors.failures import Failure


@final
class NotedMetrics:
    """The `RequestCounts` of one POST. `note(name, outcome, seconds)` is called for each request when it has ended; its name is
    None where it is no declared one.
    """

    def __init__(self, metrics: RequestMetrics, note: Callable[[str | None, Outcome, float], None]) -> None:
        self.inline = metrics.inline
        self._metrics = metrics
        self._note = note
        self._failed: dict[int, Failure] = {}
        """The failures of those in `inline`, by their places there."""

    @property
    def since(self) -> float:
        return self._metrics.since

    @since.setter
    def since(self, seconds: float) -> None:
        self._metrics.since = seconds

    def end_read(self) -> None:
        elapsed = monotonic() - self._metrics.since
        for place, name in enumerate(self.inline):
            self._note(name, self._failed.get(place, b""), elapsed)
        self._failed.clear()
        self._metrics.end_read()

    def inline_failed(self, spec: OperationSpec, failure: Failure) -> None:
        self._failed[len(self.inline) - 1] = failure
        self._metrics.inline_failed(spec, failure)

    def ended(self, request: Request, outcome: Outcome) -> None:
        self._metrics.ended(request, outcome)
        self._note(request.name, outcome, monotonic() - request.since)

    def refused(self, method: str | None, failure: Failure) -> None:
        self._metrics.refused(method, failure)
        self._note(method, failure, 0.0)
