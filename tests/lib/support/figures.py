"""Figures of a daemon in which every list has something."""

from __future__ import annotations

from discreet.a2a.types import TaskState
from discreet.gateway.figures import (
    BOUNDS,
    BacklogFigures,
    Figures,
    Histogram,
    LoopFigures,
    MemoryFigures,
    RequestCount,
    RequestDurations,
    StoreFigures,
)


def some_figures() -> Figures:
    histogram = Histogram(1, 0.5, [int(bound >= 0.5) for bound in BOUNDS])
    return Figures(
        version="1.2.3",
        uptime_seconds=1.5,
        requests=[RequestCount("http", "GetTask", "ok", 1)],
        bounds=BOUNDS,
        durations=[RequestDurations("http", "GetTask", histogram)],
        in_flight=1,
        backlog=BacklogFigures(2, 30),
        streams=1,
        busy_threads=1,
        tasks={state.name.lower().replace("_", "-"): 1 for state in TaskState},
        queued_tasks=1,
        memory=MemoryFigures(100, {"requests": 1, "tasks": 2}),
        store=StoreFigures(histogram, 1),
        loop=LoopFigures(0.001, 1),
        refused_credentials={"unknown token": 1},
        redactions=1,
        dropped_log_lines=1,
    )


def exposed_samples() -> dict[str, list[dict[str, str]]]:
    """All samples that a daemon exposes to Prometheus: their labels, by name. Needs prometheus_client."""
    from prometheus_client.parser import text_string_to_metric_families

    from discreet.gateway.metrics import exposed

    found: dict[str, list[dict[str, str]]] = {}
    for family in text_string_to_metric_families(exposed(some_figures(), "text/plain")[0].decode()):
        for sample in family.samples:
            found.setdefault(sample.name, []).append(sample.labels)
    return found
