"""How much a memory store holds. Measures nothing."""

from __future__ import annotations

from typing import Final

import msgspec

from ..checks import DEFAULT_RETENTION, Retention
from .event_tails import MAX_TAIL_BYTES

MAX_ACTIVE_TASKS: Final = 100_000
"""Tasks that have not ended. Further ones are refused."""

MAX_ENDED_BYTES: Final = 256 * 1024 * 1024
"""Total size of the tasks that have ended."""

MAX_LOG_EVENTS: Final = 65_536
"""Events that a task keeps after its snapshot. When there are more, they become part of the snapshot."""

MAX_LOG_BYTES: Final = 64 * 1024 * 1024


class StoreLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How much a memory store holds, and for how long."""

    retention: Retention = DEFAULT_RETENTION
    active_tasks: int = MAX_ACTIVE_TASKS
    ended_bytes: int = MAX_ENDED_BYTES
    log_events: int = MAX_LOG_EVENTS
    log_bytes: int = MAX_LOG_BYTES
    tail_bytes: int = MAX_TAIL_BYTES
