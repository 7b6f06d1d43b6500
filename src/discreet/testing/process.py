"""A daemon in a process of its own, for tests that also run against one in memory."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator, Mapping
from typing import Any

from ..async_block import async_block
from ..client import Peer, connect
from ..client.peer import DEFAULT_TIMEOUT
from ..client.validation import StderrMode, StrPath
from ..daemon.settings import Settings
from .memory import client_framing, flags_of


@async_block
async def spawned(
    *apps: str,
    cwd: StrPath | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float | None = DEFAULT_TIMEOUT,
    stderr: StderrMode = "inherit",
    **settings: Any,  # as in `in_memory`
) -> AsyncGenerator[Peer]:
    """A peer to `discreet serve APP…`, run by this Python in the directory `cwd` (None: this one).

        async with spawned("./app.py:notes", cwd=project, scopes=["notes:read"]) as peer:
            assert await peer.call("notes/count", type=int) == 0

    The settings become flags; the environment `env` (None: this one) and a settings file in `cwd` count as they do for
    users. Relative entries of PYTHONPATH are resolved against this directory, not `cwd`. Leaving the block ends the
    process, in bounded time.

    Raises as `in_memory` does for settings. For an app that can't be hosted, the first call raises `ConnectionFailed`.
    """
    for app in apps:
        if not isinstance(app, str):
            raise TypeError(f"an app is named by a text, not {type(app).__name__}; for objects there is `in_memory`")
    command = [sys.executable, "-P", "-m", "discreet", "serve", *flags_of(apps, settings, cwd or ".")]
    framing = client_framing(Settings(framing=settings.get("framing"), dialect=settings.get("dialect")))
    environ = _with_absolute_paths(os.environ if env is None else env)
    async with connect(command, cwd=cwd, env=environ, framing=framing, timeout=timeout, stderr=stderr) as peer:
        yield peer


def _with_absolute_paths(env: Mapping[str, str]) -> Mapping[str, str]:
    entries = [os.path.abspath(entry) for entry in env.get("PYTHONPATH", "").split(os.pathsep) if entry]
    return {**env, "PYTHONPATH": os.pathsep.join(entries)} if entries else env
