"""The usual way in: a child process and a peer to it, from one `async with`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager

from ..framing.events import Framing
from .peer import DEFAULT_TIMEOUT, Peer, attach
from .process import StrPath, spawn
from .stderr import StderrMode


@asynccontextmanager
async def connect(
    command: Sequence[StrPath],
    *,
    cwd: StrPath | None = None,
    env: Mapping[str, str] | None = None,
    framing: Framing = "content-length",
    timeout: float | None = DEFAULT_TIMEOUT,
    stderr: StderrMode = "inherit",
) -> AsyncGenerator[Peer]:
    """Run a server and talk to it:

        async with connect(["discreet", "serve", "app:files"]) as peer:
            content = await peer.call("files/read", {"path": "README.md"}, type=FileContent)

    `cwd`, `env` and `stderr` are those of `spawn`, `framing` and `timeout` (seconds a call, None for no limit) those of
    `attach`; combine the two where the process itself is of interest. Leaving ends the child, in bounded time.

    Raises `ConnectionFailed` when the command can't be run; a server that dies later is told by the calls.
    """
    async with (
        spawn(command, cwd=cwd, env=env, stderr=stderr) as process,
        attach(process, framing=framing, timeout=timeout, explain=process.explain) as peer,
    ):
        yield peer
