"""The process of another daemon: started with the first call, and again after its death. Its stderr goes to our log.

Its environment is ours without the settings of discreet, which are meant for this daemon. It ends with this process, whatever
ends that: its input ends then, and a discreet daemon watches its parent besides.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Final

from ...client.connect import Endpoint
from ...client.connection import Connection
from ...client.dialects import PLAIN
from ...client.errors import ConnectionFailed, ConnectionLoss
from ...client.peer import Peer
from ...client.process import EndBounds, spawn
from ...client.restart import RestartPolicy, restarting
from ...client.stderr import StderrMode
from ...daemon.logs import Level, log, parse_level
from ...daemon.settings.option import PREFIX
from ...errors.printable import cut
from .carried import VARIABLE, TooDeep, depth_of_process, next_depth
from .model import Command

BOUNDS: Final = EndBounds(eof=0.7, terminate=0.5, kill=0.5)
"""How it is ended: within this daemon's drain window of 2 s."""

RESTARTS: Final = RestartPolicy(limit=sys.maxsize, within=60.0)
"""It is started as often as calls need it, a moment later each time while it keeps dying, up to 5 s. A daemon runs for months:
whatever was wrong may be mended by then."""

_LEVEL: Final = re.compile(r"""\blevel"?[=:] ?"?([a-z]{4,7})\b""")
"""In both forms of discreet's log."""

LONGEST_LINE: Final = 4096
"""Characters of a line of its stderr that are logged."""


def child_environment(command: Command) -> dict[str, str]:
    """The variables of the process. Raises `TooDeep` where too many daemons stand before it."""
    own = {name: value for name, value in os.environ.items() if not name.startswith((PREFIX, f"_{PREFIX}"))}
    return {**own, **command.env, VARIABLE: next_depth(depth_of_process())}


@asynccontextmanager
async def running(command: Command, endpoint: Endpoint, stderr: StderrMode) -> AsyncGenerator[Connection]:
    """One process and the connection to it. Raises `ConnectionFailed`; before anything is started where mounts are too deep."""
    try:
        environment = child_environment(command)
    except TooDeep as exc:
        raise ConnectionFailed(ConnectionLoss(str(exc)), sent=False) from None
    async with (
        spawn(command.words, cwd=command.cwd, env=environment, stderr=stderr, bounds=BOUNDS) as process,
        endpoint.open(process, process.explain) as connection,
    ):
        yield connection


def endpoint_of(service_params: Mapping[str, str] | None = None) -> Endpoint:
    """This side of such a connection. Calls have no time limit of their own."""
    return Endpoint(PLAIN, framing=None, timeout=None, errors=(), retry=None, service_params=service_params)


def level_of(line: str) -> Level:
    """The level of a line of its log; that of what is printed past ours for any other line."""
    found = _LEVEL.search(line)
    return (found and parse_level(found[1])) or "warn"


@asynccontextmanager
async def restarted(command: Command, name: str) -> AsyncGenerator[Peer]:
    """A peer whose calls start the process where none runs. Leaving ends it."""

    @asynccontextmanager
    async def start() -> AsyncGenerator[Connection]:
        async with running(command, endpoint, log_lines) as connection:
            log.info("import.started", import_=name)
            yield connection
            if connection.loss is not None:
                log.warning("import.ended", import_=name, reason=connection.loss.reason)

    def log_lines(line: str) -> None:
        log.record(level_of(line), "import.stderr", {"import_": name, "text": cut(line, LONGEST_LINE)})

    endpoint = endpoint_of()
    async with restarting(start, RESTARTS, at_once=False) as connector:
        yield endpoint.peer(connector)
