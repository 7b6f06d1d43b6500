"""What a running daemon tells of itself when its operator asks (SIGUSR2): counters, no contents. Waits for nothing."""

from __future__ import annotations

from _thread import _count
from time import monotonic
from typing import TYPE_CHECKING

from ..logs import log
from ..logs.safe_call import safe_call

if TYPE_CHECKING:
    from ..daemon import Daemon


def log_report(daemon: Daemon) -> None:
    """Log `daemon.report`, whatever the level. To be called in the main thread, also from a signal handler."""
    queue = log.queue
    fields: dict[str, object] = safe_call(lambda: _counters(daemon), lambda fault: {"failed": type(fault).__name__})
    log.always("daemon.report", **fields, log_queued=len(queue), log_dropped=queue.dropped)


def _counters(daemon: Daemon) -> dict[str, object]:
    scheduler, memory = daemon.host.scheduler, daemon.host.memory
    counts = scheduler.counts()
    oldest = next((request for request in scheduler.requests() if request.spec.mode != "stream"), None)
    return {
        "state": daemon.lifecycle.state,
        "requests": counts["requests"],
        "running": counts["running"],
        "streams": counts["streams"],
        "threads": _count() + 1,  # `threading` would take a lock, which the code under a signal handler may hold
        "threads_busy": counts["threads_busy"],
        "unanswered": daemon.connection.unanswered,
        "oldest_method": None if oldest is None else oldest.name,
        "oldest_seconds": None if oldest is None else round(monotonic() - oldest.since, 3),
        "memory_used": memory.used,
        "memory_limit": memory.limit,
        "memory": {kind: size for kind, size in memory.by_kind().items() if size},
    }
