"""Starts a server as a child process and gives a `Peer` to it, in one `async with`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager

from ..async_block import async_block
from ..framing.events import Framing
from .connection.connection import Connection
from .dialects import PLAIN, Dialect
from .endpoint import Endpoint
from .errors import DeclaredErrors
from .peer import DEFAULT_TIMEOUT, Peer
from .policies.restart import RestartPolicy, restarting
from .policies.retry import RetryPolicy
from .process.process import EndBounds, spawn
from .process.stderr import StderrMode
from .validation import StrPath, check_command, check_instance, check_stderr


@async_block
async def connect(  # noqa: PLR0913 - the options of a process and those of calls
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

        async with connect(["discreet", "serve", "./app.py:files"]) as peer:
            content = await peer.call("files/read", {"path": "README.md"}, type=FileContent)

    `cwd`, `env`, `stderr` and `bounds` are those of `spawn`. `framing`, `dialect`, `timeout` (seconds per attempt, None for
    no limit), `errors` and `retry` are those of `attach`. Combine `spawn` and `attach` yourself if you need the process.
    Leaving the block ends the child in bounded time.

    With `restart`, the next call after the server died starts it again, and so does each further attempt of `retry`.
    Without it, a dead server stays dead. Calls that waited for the dead server raise `ConnectionFailed`, or are made again
    as `retry` says. Streams are never resumed. Handlers stay registered, and each new server gets the handshake.

    Raises `ConnectionFailed` when the command can't be run or the handshake fails; the calls report a server that dies
    later. Raises `TypeError` and `ValueError` for wrong arguments, before anything is started.
    """
    check_command(command)
    check_stderr(stderr)
    check_instance("bounds", bounds, EndBounds)
    check_instance("restart", restart, RestartPolicy, optional=True)
    endpoint = Endpoint(dialect, framing=framing, timeout=timeout, errors=errors, retry=retry)

    @asynccontextmanager
    async def start_server() -> AsyncGenerator[Connection]:
        async with (
            spawn(command, cwd=cwd, env=env, stderr=stderr, bounds=bounds) as process,
            endpoint.open(process, process.explain) as connection,
        ):
            yield connection

    if restart is None:
        async with start_server() as connection:
            yield endpoint.fixed_peer(connection)
    else:
        async with restarting(start_server, restart) as connector:
            yield endpoint.peer(connector)
