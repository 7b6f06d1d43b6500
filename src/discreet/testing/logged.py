"""What a daemon in memory logged, for whoever reads a failed test. Where real logs run, it leaves them alone."""

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


def show_log() -> None:
    """Write the events from warnings on that wait to `sys.stderr`, scrubbed as a daemon's are, and forget the others."""
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
