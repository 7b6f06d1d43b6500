"""Counts the requests of each method, and how long their answers took. Keeps numbers only, in bounded memory."""

from __future__ import annotations

from array import array
from math import ceil
from typing import Final, final

import msgspec

from ..format import Sender

MAX_METHODS: Final = 200
"""How many methods have a line of their own. Each side may invent any number of names."""

MAX_SAMPLES: Final = 8192
"""How many durations of a method are kept. Of more, every second, fourth … one is; count and maximum stay exact."""

OTHER_METHODS: Final = "(other methods)"


class MethodLatency(msgspec.Struct, frozen=True, array_like=True):
    """The requests of one side for one method. Times are in milliseconds, None if no answer came."""

    asker: Sender
    method: str
    count: int
    errors: int
    median: float | None
    p95: float | None
    longest: float | None


@final
class _Durations:
    def __init__(self) -> None:
        self.count = self.errors = 0
        self._samples = array("d")
        self._step = 1  # one in so many answers is kept
        self._answers = 0
        self._longest = 0.0

    def add(self, took: float) -> None:
        self._longest = max(self._longest, took)
        if self._answers % self._step == 0:
            self._samples.append(took)
            if len(self._samples) > MAX_SAMPLES:
                self._samples = self._samples[::2]
                self._step *= 2
        self._answers += 1

    def latency(self, asker: Sender, method: str) -> MethodLatency:
        ordered = sorted(self._samples)
        return MethodLatency(
            asker,
            method,
            self.count,
            self.errors,
            _percentile(ordered, 50),
            _percentile(ordered, 95),
            self._longest if ordered else None,
        )


@final
class Latencies:
    """The requests of one session."""

    def __init__(self) -> None:
        self._methods: dict[tuple[Sender, str], _Durations] = {}

    def asked(self, asker: Sender, method: str) -> None:
        self._of(asker, method).count += 1

    def answered(self, asker: Sender, method: str, took: float, *, failed: bool) -> None:
        durations = self._of(asker, method)
        durations.errors += failed
        durations.add(max(0.0, took))

    def table(self) -> list[MethodLatency]:
        """The most frequent methods first."""
        found = [durations.latency(*key) for key, durations in self._methods.items()]
        return sorted(found, key=lambda it: (-it.count, it.asker, it.method))

    def _of(self, asker: Sender, method: str) -> _Durations:
        if (asker, method) not in self._methods and len(self._methods) >= MAX_METHODS:
            method = OTHER_METHODS
        return self._methods.setdefault((asker, method), _Durations())


def _percentile(ordered: list[float], percent: int) -> float | None:
    """The smallest duration that `percent` % of them do not exceed (nearest rank)."""
    return ordered[max(0, ceil(len(ordered) * percent / 100) - 1)] if ordered else None
