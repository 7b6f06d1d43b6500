"""Counts the requests that have ended, by method, and how long they took. Used on the loop's thread only."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from math import frexp
from time import monotonic
from typing import TYPE_CHECKING, Final, TypeAlias, final

from ...errors.codes import row_of
from ...errors.failures import Failure
from ..operations.request import Outcome

if TYPE_CHECKING:
    from ..operations.request import Request

OTHER: Final = "other"
"""Stands for every method that is not declared, and for codes beyond `MAX_CODES`: what callers write is never counted by name."""

SHORTEST: Final = 1e-9
"""Stands for no time at all, which has no power of two: a coarse clock does not move during a short call."""

MAX_RECORDED: Final = 64
"""How many durations are kept before they are sorted into powers of two: several at once take a fraction of the time."""

MAX_CODES: Final = 64
"""Codes that are counted by name for one method. An operation declares a few."""


@final
class Durations:
    """A histogram of seconds: how many lie between two powers of two, and their sum.

    `recorded` are the last ones, which `settle` sorts in. It must be called when there are `MAX_RECORDED`, and before reading.
    `exponents[n]` counts those of at least `2 ** (n - 1)` and less than `2 ** n` seconds.
    """

    __slots__ = ("exponents", "recorded", "seconds")

    def __init__(self) -> None:
        self.recorded: list[float] = []
        self.exponents: defaultdict[int, int] = defaultdict(int)
        self.seconds = 0.0

    def add(self, seconds: float, count: int = 1) -> None:
        """Count something that took so long, or several that took as long each."""
        self.exponents[frexp(seconds or SHORTEST)[1]] += count
        self.seconds += count * seconds

    def settle(self) -> None:
        if not self.recorded:
            return
        from bisect import bisect_left  # late: not before the first answers

        recorded = self.recorded
        recorded.sort()
        counted, last = 0, frexp(recorded[-1] or SHORTEST)[1]
        for exponent in range(frexp(recorded[0] or SHORTEST)[1], last):
            shorter = bisect_left(recorded, 2.0**exponent)
            self.exponents[exponent] += shorter - counted
            counted = shorter
        self.exponents[last] += len(recorded) - counted
        self.seconds += sum(recorded)
        recorded.clear()

    def include(self, others: Durations) -> None:
        others.settle()
        for exponent, count in others.exponents.items():
            self.exponents[exponent] += count
        self.seconds += others.seconds

    @property
    def count(self) -> int:
        return sum(self.exponents.values()) + len(self.recorded)


@final
class MethodMetrics:
    """The requests for one method. `failed` of those with a duration have a code; `codes` counts these, and what has no
    duration: what was refused, and subscriptions."""

    __slots__ = ("codes", "durations", "failed")

    def __init__(self) -> None:
        self.durations = Durations()
        self.failed = 0
        self.codes: dict[str, int] = {}

    def count(self, code: str) -> None:
        if code not in self.codes and len(self.codes) >= MAX_CODES:
            code = OTHER
        self.codes[code] = self.codes.get(code, 0) + 1


Note: TypeAlias = Callable[[str | None, Outcome, float], None]
"""Told of a request that has ended: its declared name, its outcome, and the seconds that it took."""


@final
class RequestMetrics:
    """Counts the ended requests of one transport, by method. `note`, if there is one, is told of each.

    A duration is the time from when a request was read until its outcome was there. `inline` names the requests that were
    answered while they were read, since the time `since`. Their responses are sent together, after `end_read`, and all have the
    duration of the whole: a clock for each would cost as much as a small handler.
    """

    __slots__ = ("_failed", "_note", "inline", "methods", "since")

    def __init__(self, methods: defaultdict[str, MethodMetrics] | None = None, note: Note | None = None) -> None:
        self.methods = defaultdict(MethodMetrics) if methods is None else methods
        self.inline: list[str] = []
        self.since = 0.0
        self._note = note
        self._failed: dict[int, Failure] = {}  # of those in `inline`, by their places there

    def noted(self, note: Note) -> RequestMetrics:
        """Return metrics that count into this and tell `note` besides."""
        return RequestMetrics(self.methods, note)

    def end_read(self) -> None:
        """The requests in `inline` are answered."""
        elapsed, inline = monotonic() - self.since, self.inline
        if self._note is not None:
            for place, name in enumerate(inline):
                self._note(name, self._failed.get(place, b""), elapsed)
            self._failed.clear()
        if len(inline) == 1:  # as most clients send them, and worth a way of its own
            durations = self.methods[inline.pop()].durations
            durations.recorded.append(elapsed)
            if len(durations.recorded) >= MAX_RECORDED:
                durations.settle()
            return
        for method, count in Counter(inline).items():
            self.methods[method].durations.add(elapsed, count)
        inline.clear()

    def inline_failed(self, name: str, failure: Failure) -> None:
        """The last request in `inline`, of the operation of this name, failed."""
        if self._note is not None:
            self._failed[len(self.inline) - 1] = failure
        method = self.methods[name]
        method.failed += 1
        method.count(code_of(failure))

    def ended(self, request: Request, outcome: Outcome) -> None:
        """A request that was queued has its outcome. Subscriptions have no duration: they last as long as their client likes."""
        spec, seconds = request.spec, monotonic() - request.since
        method = self.methods[spec.name]
        if self._note is not None:
            self._note(spec.name, outcome, seconds)
        if spec.mode == "stream":
            return method.count(OK if isinstance(outcome, bytes) else code_of(outcome))
        recorded = method.durations.recorded
        recorded.append(seconds)
        if len(recorded) >= MAX_RECORDED:
            method.durations.settle()
        if not isinstance(outcome, bytes):
            method.failed += 1
            method.count(code_of(outcome))

    def refused(self, method: str | None, failure: Failure) -> None:
        """A request was not run. `method` is the name of a declared operation, else None."""
        self.methods[OTHER if method is None else method].count(code_of(failure))
        if self._note is not None:
            self._note(method, failure, 0.0)


OK: Final = "ok"
"""The code of a request that did not fail."""


def code_of(failure: Failure) -> str:
    """Return the failure's name in the table of errors, or the code that its operation declares."""
    return row_of(failure).protocol_code
