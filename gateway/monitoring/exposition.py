"""The figures as metrics of Prometheus, by its conventions for names and units. Needs prometheus-client.

No label holds what a caller has sent: methods, codes, states and kinds are declared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, final

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

from .figures import BOUNDS, Figures, Histogram

_BOUNDS: Final = [*map(floatToGoString, BOUNDS), "+Inf"]


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
        yield from _requests(self._figures)
        yield from _under_way(self._figures)
        yield from _kept(self._figures)
        yield from _process(self._figures)
        yield from REGISTRY.collect()


def _requests(figures: Figures) -> Iterator[Metric]:
    requests = CounterMetricFamily(
        "discreet_requests",
        "Requests by outcome: ok, or the code of the error.",
        labels=("transport", "method", "code"),
    )
    for each in figures.requests:
        requests.add_metric((each.transport, each.method, each.code), each.count)
    yield requests
    durations = HistogramMetricFamily(
        "discreet_request_duration_seconds",
        "Time from when a request was read until its outcome was there. Subscriptions have none.",
        labels=("transport", "method"),
    )
    for timed in figures.durations:
        _add(durations, (timed.transport, timed.method), timed.durations)
    yield durations


def _under_way(figures: Figures) -> Iterator[Metric]:
    yield GaugeMetricFamily(
        "discreet_requests_in_flight",
        "Requests that wait or run, calls between operations included.",
        figures.in_flight,
    )
    yield GaugeMetricFamily("discreet_backlog_requests", "Requests that wait to be started.", figures.backlog.requests)
    yield GaugeMetricFamily(
        "discreet_backlog_bytes", "Size of the requests that wait to be started.", figures.backlog.bytes
    )
    yield GaugeMetricFamily("discreet_streams", "Subscriptions that run.", figures.streams)
    yield GaugeMetricFamily("discreet_busy_threads", "Worker threads that run a handler.", figures.busy_threads)


def _kept(figures: Figures) -> Iterator[Metric]:
    tasks = GaugeMetricFamily("discreet_tasks", "Tasks in the store, by state.", labels=("state",))
    for state, count in figures.tasks.items():
        tasks.add_metric((state,), count)
    yield tasks
    if figures.queued_tasks is not None:
        yield GaugeMetricFamily(
            "discreet_tasks_queued",
            "Tasks in the store that wait until a daemon has room for them.",
            figures.queued_tasks,
        )
    memory = GaugeMetricFamily("discreet_memory_used_bytes", "What is held for clients, by kind.", labels=("kind",))
    for kind, size in figures.memory.used.items():
        memory.add_metric((kind,), size)
    yield memory
    yield GaugeMetricFamily(
        "discreet_memory_limit_bytes", "How much may be held for clients (--max-memory).", figures.memory.limit
    )
    commits = HistogramMetricFamily(
        "discreet_store_commit_duration_seconds", "Time that the task store took for a commit.", labels=()
    )
    _add(commits, (), figures.store.commits)
    yield commits
    yield CounterMetricFamily(
        "discreet_store_commit_failures", "Commits that the task store failed to make.", figures.store.failed_commits
    )


def _process(figures: Figures) -> Iterator[Metric]:
    yield InfoMetricFamily("discreet_build", "What runs.", {"version": figures.version})
    yield GaugeMetricFamily("discreet_uptime_seconds", "Time since the start.", figures.uptime_seconds)
    yield GaugeMetricFamily(
        "discreet_loop_delay_seconds", "Time that one turn of the event loop took just now.", figures.loop.delay_seconds
    )
    yield CounterMetricFamily(
        "discreet_loop_blocked",
        "Times that a step of a handler kept the event loop for longer than --blocked-after.",
        figures.loop.blocked,
    )
    refused = CounterMetricFamily(
        "discreet_credentials_refused",
        "Times that the identity provider did not accept credentials, by its reason.",
        labels=("reason",),
    )
    for reason, count in figures.refused_credentials.items():
        refused.add_metric((reason,), count)
    yield refused
    yield CounterMetricFamily(
        "discreet_redactions", "Secrets replaced in the log and in details of errors, about.", figures.redactions
    )
    yield CounterMetricFamily(
        "discreet_log_lines_dropped", "Log lines that nobody took in time.", figures.dropped_log_lines
    )


def _add(family: HistogramMetricFamily, labels: Sequence[str], histogram: Histogram) -> None:
    counts = [*histogram.buckets, histogram.count]
    family.add_metric(labels, list(zip(_BOUNDS, map(float, counts), strict=True)), histogram.seconds)
