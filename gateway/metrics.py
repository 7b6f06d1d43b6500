"""`/metrics`: the figures for a scraper, as metrics of Prometheus, by its conventions for names and units.

Needs prometheus-client. It is no call: no method counts it, and nothing queues. No label holds what a caller has sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, final

from prometheus_client import REGISTRY
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from ..daemon.dispatch.execution import Raised, attempt
from ..daemon.logs import log
from ..daemon.operations.access import Access
from ..errors.failures import Internal
from ..lazy import anyio
from .answers import Answer, headers_of
from .figures import BOUNDS, Figures, Histogram, read_figures
from .health import plain_now, refusal

if TYPE_CHECKING:
    from ..daemon.host import Host
    from ..daemon.operations.identity import Identity
    from .asgi import Send
    from .calls import CallRunner
    from .requests import GatewayRequest

SCRAPE_SECONDS: Final = 10.0
"""How long collecting may take, collectors of services included. Prometheus waits as long by default."""


@final
class MetricsEndpoint:
    """Serves `/metrics`. Callers must be known if there is an identity provider."""

    def __init__(self, host: Host, calls: CallRunner) -> None:
        self._host = host
        self._calls = calls
        self._one_at_a_time: anyio.CapacityLimiter | None = None

    async def respond(self, request: GatewayRequest, path: str, send: Send) -> Answer | None:
        refused = refusal(request, path, "metrics")
        if refused is not None:
            return refused
        access = await self._calls.known_access(request, "metrics")
        if isinstance(access, Internal):
            return plain_now("internal error", 500)
        if not isinstance(access, Access):
            return plain_now("authentication required", 401, headers_of(access))
        return await self._figures(access.caller, request.headers.get("accept", ""))

    async def _figures(self, identity: Identity | None, accept: str) -> Answer:
        """Written in a thread: for hundreds of methods that takes many milliseconds. One at a time, so that none pile up."""
        if self._one_at_a_time is None:
            self._one_at_a_time = anyio.CapacityLimiter(1)
        with anyio.move_on_after(SCRAPE_SECONDS):
            write = partial(exposed, await read_figures(self._host, identity), accept)
            limiter = self._one_at_a_time
            written = await attempt(lambda: anyio.to_thread.run_sync(write, abandon_on_cancel=True, limiter=limiter))
            if isinstance(written, Raised):
                log.error("metrics.failed", exc=written.exc)
                return plain_now("internal error", 500)
            body, content_type = written
            return Answer(200, body, content_type, {"cache-control": "no-store"})
        log.error("metrics.failed", problem=f"collecting took longer than {SCRAPE_SECONDS:g} s")
        return plain_now("too slow", 503)


def exposed(figures: Figures, accept: str) -> tuple[bytes, str]:
    """The text and its content type, in the format that the client prefers (`accept` is its header).

    What services have registered with prometheus-client themselves follows, and what that knows of the process. May raise
    what their collectors raise.
    """
    encode, content_type = choose_encoder(accept)
    return encode(_All(figures)), content_type


@final
class _All(Collector):
    def __init__(self, figures: Figures) -> None:
        self._figures = figures

    def collect(self) -> Iterator[Metric]:
        yield from _of_clients(self._figures)
        yield from _of_daemon(self._figures)
        yield from REGISTRY.collect()


def _of_clients(told: Figures) -> Iterator[Metric]:
    outcomes = (((each.transport, each.method, each.code), each.count) for each in told.requests)
    yield _counter("requests", "Requests by outcome: ok, or the code of the error.", "transport method code", outcomes)
    yield _histogram(
        "request_duration_seconds",
        "Time from when a request was read until its outcome was there. Subscriptions have none.",
        "transport method",
        (((each.transport, each.method), each.durations) for each in told.durations),
    )
    yield _gauge("requests_in_flight", "Requests that wait or run, calls between operations included.", told.in_flight)
    yield _gauge("backlog_requests", "Requests that wait to be started.", told.backlog.requests)
    yield _gauge("backlog_bytes", "Size of the requests that wait to be started.", told.backlog.bytes)
    yield _gauge("streams", "Subscriptions that run.", told.streams)
    yield _gauge("busy_threads", "Worker threads that run a handler.", told.busy_threads)
    yield _gauges("tasks", "Tasks in the store, by state.", "state", told.tasks)
    if told.queued_tasks is not None:
        queued = "Tasks in the store that wait until a daemon has room for them."
        yield _gauge("tasks_queued", queued, told.queued_tasks)
    yield _gauges("memory_used_bytes", "What is held for clients, by kind.", "kind", told.memory.used)
    yield _gauge("memory_limit_bytes", "How much may be held for clients (--max-memory).", told.memory.limit)
    taken = "Time that the task store took for a commit."
    yield _histogram("store_commit_duration_seconds", taken, "", [((), told.store.commits)])
    failed = "Commits that the task store failed to make."
    yield _counter("store_commit_failures", failed, "", [((), told.store.failed_commits)])


def _of_daemon(told: Figures) -> Iterator[Metric]:
    yield InfoMetricFamily("discreet_build", "What runs.", {"version": told.version})
    yield _gauge("uptime_seconds", "Time since the start.", told.uptime_seconds)
    delay = "Time that one turn of the event loop took just now."
    yield _gauge("loop_delay_seconds", delay, told.loop.delay_seconds)
    blocked = "Times that a step of a handler kept the event loop for longer than --blocked-after."
    yield _counter("loop_blocked", blocked, "", [((), told.loop.blocked)])
    refused = "Times that the identity provider did not accept credentials, by its reason."
    reasons = (((reason,), count) for reason, count in told.refused_credentials.items())
    yield _counter("credentials_refused", refused, "reason", reasons)
    redacted = "Secrets replaced in the log and in details of errors, about."
    yield _counter("redactions", redacted, "", [((), told.redactions)])
    yield _counter(
        "log_lines_dropped",
        "Log lines dropped because the log was not read in time.",
        "",
        [((), told.dropped_log_lines)],
    )


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"discreet_{name}", text, value)


def _gauges(name: str, text: str, label: str, values: Mapping[Any, float]) -> Metric:
    family = GaugeMetricFamily(f"discreet_{name}", text, labels=(label,))
    for value, count in values.items():
        family.add_metric((value,), count)
    return family


def _counter(name: str, text: str, labels: str, values: Iterable[tuple[Sequence[str], float]]) -> Metric:
    family = CounterMetricFamily(f"discreet_{name}", text, labels=labels.split())
    for named, count in values:
        family.add_metric(named, count)
    return family


_BOUNDS: Final = [*map(floatToGoString, BOUNDS), "+Inf"]


def _histogram(name: str, text: str, labels: str, values: Iterable[tuple[Sequence[str], Histogram]]) -> Metric:
    family = HistogramMetricFamily(f"discreet_{name}", text, labels=labels.split())
    for named, histogram in values:
        counts = [*histogram.buckets, histogram.count]
        family.add_metric(named, list(zip(_BOUNDS, map(float, counts), strict=True)), histogram.seconds)
    return family
