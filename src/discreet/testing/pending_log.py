"""The log of a daemon in memory, for readers of a failed test. Leaves the log alone where it is written anyway."""

from __future__ import annotations

import os
import sys
from functools import cache

from ..daemon.logs import log
from ..daemon.logs.levels import RANK
from ..daemon.logs.line import fallback_line
from ..daemon.logs.queue import LogEvent
from ..daemon.logs.render import Renderer
from ..daemon.logs.safe_call import safe_call


def write_pending_log() -> None:
    """Write the queued events of level warning and above to `sys.stderr`, scrubbed, and drop the others."""
    if log.queue.attached:
        return
    while (event := log.queue.get()) is not None:
        if event.rank >= RANK["warn"]:
            sys.stderr.write(_line(event).decode())


def _line(event: LogEvent) -> bytes:
    return safe_call(lambda: _renderer().line(event), lambda fault: fallback_line(event, "keyvalue", fault))


@cache
def _renderer() -> Renderer:
    return Renderer("keyvalue", color=False, environ=os.environ)
