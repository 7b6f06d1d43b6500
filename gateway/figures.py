"""The figures of a daemon at one moment, and `services/metrics`, which answers with them (section 7 of docs/protocol.md).

Most parts of the daemon count what they do anyway, and are asked here. The core loads this by its name, with the first question.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec

from ..daemon.dispatch.metrics import OK, OTHER, Durations
from ..daemon.logs import log
from ..daemon.memory import Kind
from ..daemon.operations.access import AccessRule
from ..daemon.operations.context import Context
from ..daemon.operations.service import Service
from ..errors.redaction import redactions
from ..lazy import anyio

if TYPE_CHECKING:
    from ..daemon.dispatch.metrics import RequestMetrics
    from ..daemon.dispatch.scheduler import Scheduler
    from ..daemon.host import Host
    from ..daemon.operations.identity import Identity

ALL_METHODS: Final = AccessRule(all_of=frozenset({"metrics"}))
"""The rule for readers of the figures of every method: a scraper need not be allowed to call what it counts."""

Transport: TypeAlias = Literal["stdio", "http"]

EXPONENTS: Final = range(-13, 6)

BOUNDS: Final = tuple(2.0**exponent for exponent in EXPONENTS)
"""The upper bounds of the buckets of all histograms, in seconds: powers of two, from 0.12 ms to 32 s."""


class Histogram(msgspec.Struct, frozen=True):
    """How long things took. `buckets` counts those that took at most the bound of the same place in `BOUNDS`; `seconds` is
    their sum."""

    count: int
    seconds: float
    buckets: Sequence[int]


class RequestCount(msgspec.Struct, frozen=True):
    """How many requests had one outcome: `code` is `ok`, or the protocol code of the error."""

    transport: Transport
    method: str
    code: str
    count: int


class RequestDurations(msgspec.Struct, frozen=True):
    """How long the requests for one method took."""

    transport: Transport
    method: str
    durations: Histogram


class BacklogFigures(msgspec.Struct, frozen=True):
    """The requests that wait to be started, and their size."""

    requests: int
    bytes: int


class MemoryFigures(msgspec.Struct, frozen=True):
    """Bytes that are held for clients, by kind, and how many may be."""

    limit: int
    used: Mapping[Kind, int]


class StoreFigures(msgspec.Struct, frozen=True, rename="camel"):
    """How long the commits of the task store took, and how many of them failed."""

    commits: Histogram
    failed_commits: int


class LoopFigures(msgspec.Struct, frozen=True, rename="camel"):
    """`delay_seconds` is how long the event loop took for one turn just now. `blocked` is how many times a step of an app has
    kept it for longer than the setting `blocked-after`."""

    delay_seconds: float
    blocked: int


class Figures(msgspec.Struct, frozen=True, rename="camel"):
    """Counters are of the time since the start; all others of now. `tasks` are those of the store, by state;
    `queued_tasks` of them wait until a daemon has room for them."""

    version: str
    uptime_seconds: float
    requests: Sequence[RequestCount]
    bounds: Sequence[float]
    durations: Sequence[RequestDurations]
    in_flight: int
    backlog: BacklogFigures
    streams: int
    busy_threads: int
    tasks: Mapping[str, int]
    queued_tasks: int | None
    memory: MemoryFigures
    store: StoreFigures
    loop: LoopFigures
    refused_credentials: Mapping[str, int]
    redactions: int
    dropped_log_lines: int


def metrics(host: Host) -> Service:
    """Make the part of the service `services` that counts."""
    service = Service("services")

    @service.query(name="metrics")
    async def read(ctx: Context) -> Figures:
        """Tell how many requests there were and how long they took, what is under way, and what is held in memory."""
        return await read_figures(host, ctx.identity)

    return service


async def read_figures(host: Host, identity: Identity | None) -> Figures:
    """The figures as they are now. Methods that this caller may not call are `other`, unless it holds the scope `metrics`."""

    def shows(method: str) -> bool:
        spec = host.registry.find(method)
        return spec is None or spec.access.allows(identity) or ALL_METHODS.allows(identity)

    counts = host.scheduler.counts()
    began = monotonic()
    await anyio.lowlevel.checkpoint()
    delay = monotonic() - began
    counts_by_code, durations = _requests(host.request_metrics, shows)
    return Figures(
        version=host.version,
        uptime_seconds=monotonic() - host.started,
        requests=[RequestCount(*key, counts_by_code[key]) for key in sorted(counts_by_code)],
        bounds=BOUNDS,
        durations=[RequestDurations(*key, histogram(durations[key])) for key in sorted(durations)],
        in_flight=counts["requests"],
        backlog=_backlog(host.scheduler),
        streams=counts["streams"],
        busy_threads=counts["threads_busy"],
        tasks=await host.agent.count_tasks(),
        queued_tasks=await host.agent.count_queued(),
        memory=MemoryFigures(host.memory.limit, host.memory.by_kind()),
        store=StoreFigures(histogram(host.agent.commits), host.agent.failed_commits),
        loop=LoopFigures(delay, host.watch.blocked),
        refused_credentials=dict(host.access.refused),
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
    """Return the durations as a histogram with the buckets of `BOUNDS`, each of which includes the shorter ones."""
    durations.settle()
    buckets = [sum(count for each, count in durations.exponents.items() if each <= exponent) for exponent in EXPONENTS]
    return Histogram(durations.count, durations.seconds, buckets)


def _backlog(scheduler: Scheduler) -> BacklogFigures:
    """Count the waiting requests of all clients."""
    backlogs = {id(request.backlog): request.backlog for request in scheduler.requests() if request.backlog is not None}
    return BacklogFigures(sum(map(len, backlogs.values())), sum(each.bytes for each in backlogs.values()))
