"""What a daemon in memory logged, for whoever reads a failed test. Where real logs run, it leaves them alone."""

from __future__ import annotations

import os
import sys
from functools import cache

from ..daemon.logs import log
from ..daemon.logs.contain import contained
from ..daemon.logs.levels import RANK
from ..daemon.logs.line import minimal_line
from ..daemon.logs.queue import Event
from ..daemon.logs.render import Renderer


def show_log() -> None:
    """Write the events from warnings on that wait to `sys.stderr`, scrubbed as a daemon's are, and forget the others."""
    if log.backlog.attached:
        return
    while (event := log.backlog.get()) is not None:
        if event.rank >= RANK["warn"]:
            sys.stderr.write(_line(event).decode())


def _line(event: Event) -> bytes:
    return contained(lambda: _renderer().line(event), lambda fault: minimal_line(event, "keyvalue", fault))


@cache
def _renderer() -> Renderer:
    return Renderer("keyvalue", color=False, environ=os.environ)
