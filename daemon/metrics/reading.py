"""Reads the figures where they are kept: most parts of the daemon count what they do anyway."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from time import monotonic
from typing import Protocol, TypeAlias

import msgspec

from ...errors.redaction import redactions
from ...lazy import anyio
from ..dispatch.metrics import OK, OTHER, Durations, RequestMetrics
from ..dispatch.scheduler import Scheduler
from ..logs import log
from ..memory import MemoryBudget
from ..process.loop_watch import LoopWatch
from .figures import (
    BOUNDS,
    EXPONENTS,
    BacklogFigures,
    Figures,
    Histogram,
    LoopFigures,
    MemoryFigures,
    RequestCount,
    RequestDurations,
    StoreFigures,
    Transport,
)


class TaskMetrics(Protocol):
    """What the agent counts."""

    @property
    def commits(self) -> Durations:
        """How long the store took for each commit."""
        ...

    @property
    def failed_commits(self) -> int: ...

    async def count_tasks(self) -> Mapping[str, int]:
        """The tasks in the store, by state. Takes a bounded time, after which there are none."""
        ...

    async def count_queued(self) -> int | None:
        """Those that wait until a daemon has room for them. Takes a bounded time, after which it is None."""
        ...


class Sources(msgspec.Struct, frozen=True):
    """Where the figures are. `started` is in seconds of the monotonic clock."""

    version: str
    started: float
    requests: Mapping[Transport, RequestMetrics]
    scheduler: Scheduler
    memory: MemoryBudget
    watch: LoopWatch
    tasks: TaskMetrics
    refused_credentials: Mapping[str, int]


async def read_figures(sources: Sources, shows: Callable[[str], bool]) -> Figures:
    """The figures as they are now. Methods that it does not show count as `other`."""
    counts = sources.scheduler.counts()
    began = monotonic()
    await anyio.lowlevel.checkpoint()
    delay = monotonic() - began
    counts_by_code, durations = _requests(sources.requests, shows)
    return Figures(
        version=sources.version,
        uptime_seconds=monotonic() - sources.started,
        requests=[RequestCount(*key, counts_by_code[key]) for key in sorted(counts_by_code)],
        bounds=BOUNDS,
        durations=[RequestDurations(*key, histogram(durations[key])) for key in sorted(durations)],
        in_flight=counts["requests"],
        backlog=_backlog(sources.scheduler),
        streams=counts["streams"],
        busy_threads=counts["threads_busy"],
        tasks=await sources.tasks.count_tasks(),
        queued_tasks=await sources.tasks.count_queued(),
        memory=MemoryFigures(sources.memory.limit, sources.memory.by_kind()),
        store=StoreFigures(histogram(sources.tasks.commits), sources.tasks.failed_commits),
        loop=LoopFigures(delay, sources.watch.blocked),
        refused_credentials=dict(sources.refused_credentials),
        redactions=redactions(),
        dropped_log_lines=log.queue.dropped,
    )


_Method: TypeAlias = tuple[Transport, str]


def _requests(
    metrics: Mapping[Transport, RequestMetrics], shows: Callable[[str], bool]
) -> tuple[Mapping[tuple[Transport, str, str], int], Mapping[_Method, Durations]]:
    """How many requests had which code, and how long those took that have a duration."""
    counts: Counter[tuple[Transport, str, str]] = Counter()
    durations: dict[_Method, Durations] = {}
    for transport, of_transport in metrics.items():
        for name, method in of_transport.methods.items():
            shown = name if shows(name) else OTHER
            for code, count in method.codes.items():
                counts[transport, shown, code] += count
            timed = method.durations.count
            if timed > method.failed:
                counts[transport, shown, OK] += timed - method.failed
            if timed:
                durations.setdefault((transport, shown), Durations()).include(method.durations)
    return counts, durations


def histogram(durations: Durations) -> Histogram:
    """The same with the buckets of `BOUNDS`, each of which includes the shorter ones."""
    durations.settle()
    buckets = [sum(count for each, count in durations.exponents.items() if each <= exponent) for exponent in EXPONENTS]
    return Histogram(durations.count, durations.seconds, buckets)


def _backlog(scheduler: Scheduler) -> BacklogFigures:
    """What waits of all clients that have sent something."""
    backlogs = {id(request.backlog): request.backlog for request in scheduler.requests() if request.backlog is not None}
    return BacklogFigures(sum(map(len, backlogs.values())), sum(each.bytes for each in backlogs.values()))
