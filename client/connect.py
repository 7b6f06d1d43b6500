"""The usual way in: a child process and a peer to it, from one `async with`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import count

from ..errors.backoff import SYSTEM_TIMING
from ..framing.events import Framing
from .attach import shake_hands
from .connection.connection import Connection
from .connection.connector import Connector, FixedConnector, opened
from .connection.handlers import Handlers
from .dialects import PLAIN, Dialect
from .errors import DeclaredErrors
from .peer import DEFAULT_TIMEOUT, Defaults, Peer
from .policies.restart import RestartingConnector, RestartPolicy
from .policies.retry import RetryPolicy
from .process.process import EndBounds, spawn
from .process.stderr import StderrMode
from .task_group import background_tasks
from .validation import StrPath, check_command, check_framing, check_timeout


@asynccontextmanager
async def connect(  # noqa: PLR0913 - what there is to say about a process, and about calls
    command: Sequence[StrPath],
    *,
    cwd: StrPath | None = None,
    env: Mapping[str, str] | None = None,
    stderr: StderrMode = "inherit",
    bounds: EndBounds = EndBounds(),  # noqa: B008 - frozen
    framing: Framing | None = None,
    dialect: Dialect = PLAIN,
    timeout: float | None = DEFAULT_TIMEOUT,
    errors: DeclaredErrors = (),
    retry: RetryPolicy | None = None,
    restart: RestartPolicy | None = None,
) -> AsyncGenerator[Peer]:
    """Run a server and talk to it:

        async with connect(["discreet", "serve", "app:files"]) as peer:
            content = await peer.call("files/read", {"path": "README.md"}, type=FileContent)

    `cwd`, `env`, `stderr` and `bounds` are those of `spawn`; `framing`, `dialect`, `timeout` (seconds an attempt, None for no
    limit), `errors` and `retry` those of `attach`. Combine the two where the process itself is of interest. Leaving ends
    the child, in bounded time.

    With `restart`, the next call after the server died starts it anew, and so do the attempts of `retry`; without, its
    end is final. What waited for the server that died fails with `ConnectionFailed`, or is made again as `retry` says;
    streams are never resumed. Handlers stay registered, and each new server gets its handshake.

    Raises `ConnectionFailed` when the command can't be run or the handshake fails; a server that dies later is told by the
    calls. Raises `TypeError` and `ValueError` for wrong arguments, before anything is started.
    """
    check_command(command)
    check_framing(framing)
    check_timeout(timeout)
    served = Handlers(dialect)
    ids = count(1)
    defaults = Defaults(timeout, tuple(errors), retry)

    @asynccontextmanager
    async def begin() -> AsyncGenerator[Connection]:
        async with (
            spawn(command, cwd=cwd, env=env, stderr=stderr, bounds=bounds) as process,
            opened(process, served, framing=framing or dialect.framing, explain=process.explain) as connection,
        ):
            await shake_hands(connection, served, defaults, ids)
            yield connection

    line: Connector
    if restart is None:
        async with begin() as connection:
            line = FixedConnector(connection)
            yield Peer(line, served, defaults, ids=ids)
        return
    async with background_tasks() as tasks:
        line = RestartingConnector(begin, restart, tasks=tasks, timing=SYSTEM_TIMING)
        try:
            await line.connection()
            yield Peer(line, served, defaults, ids=ids)
        finally:
            line.close()
