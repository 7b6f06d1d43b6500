"""A peer to a daemon: over a pair of pipes in memory, or to a process of its own. One test runs on both.

Owns how a test's settings reach the daemon, and how the daemon in memory begins and ends. Knows nothing of contracts.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import anyio

from .. import __version__
from ..client import Peer, attach, connect
from ..client.peer import DEFAULT_TIMEOUT
from ..client.process.stderr import StderrMode
from ..client.task_group import background_tasks
from ..client.validation import StrPath
from ..daemon.credentials import access_of, credentials_of
from ..daemon.daemon import Daemon
from ..daemon.host import Host
from ..daemon.operations.access import PARENT, Access, IdentityProvider
from ..daemon.operations.service import DeclarationError, Service
from ..daemon.settings import Settings
from ..daemon.settings.flags import to_argv
from ..daemon.settings.option import RawValue, parse_value
from ..daemon.settings.table import OPTIONS
from ..errors.redaction import register
from ..framing.events import Framing
from ..framing.transports.interface import ByteTransport
from ..framing.transports.memory import memory_pair
from .logged import show_log

if TYPE_CHECKING:
    from ..agents import Agent

_BY_FIELD: Final = {option.field: option for option in OPTIONS}


@asynccontextmanager
async def in_memory(
    *hosted: Service | Agent,
    timeout: float | None = DEFAULT_TIMEOUT,
    provider: IdentityProvider | None = None,
    credentials: Mapping[str, str] | None = None,
    **settings: Any,  # fields of `Settings`, each of its own type
) -> AsyncGenerator[Peer]:
    """A peer to a daemon that hosts these services, and at most one agent, in this event loop:

        async with in_memory(notes, scopes=["notes:read"]) as peer:
            assert await peer.call("notes/count", type=int) == 0

    `timeout` is what a call waits, in seconds (None: no limit). The settings are those of docs/settings.md with `_`
    for `-`; those about the process around a daemon (apps, logs, parent) say nothing here, and neither the environment
    nor a settings file is read. `provider` and `credentials` are what the settings `identity` and `capabilities` name,
    as objects: who callers are, and what `ctx.capabilities` holds.

    What the daemon logged from warnings on is written to `sys.stderr` when the block ends, tracebacks of handlers among
    it. Leaving ends the daemon's input; what still runs has the drain window to finish. An exception that leaves the
    block ends everything at once.

    Raises `DeclarationError` for services that can't be hosted together, `UsageError` for a value that is none of its
    setting, `TypeError` for a setting that there is not.
    """
    chosen = settings_of(settings)
    framing = framing_of(chosen.framing)
    async with (
        wired(hosted, chosen, provider=provider, credentials=credentials) as theirs,
        attach(theirs, framing=framing, timeout=timeout) as peer,
    ):
        yield peer


@asynccontextmanager
async def wired(
    hosted: Sequence[Service | Agent],
    settings: Settings,
    *,
    provider: IdentityProvider | None,
    credentials: Mapping[str, str] | None,
) -> AsyncGenerator[ByteTransport]:
    """The other end of the wire to a daemon, for those who are no peer. Everything else is as `in_memory` says."""
    ours, theirs = memory_pair()
    services = [each for each in hosted if isinstance(each, Service)]
    agents = [each for each in hosted if not isinstance(each, Service)]
    if len(agents) > 1:
        raise DeclarationError("a daemon hosts one agent")
    host = Host(
        services,
        settings,
        version=__version__,
        access=access_of(settings) if provider is None else Access(PARENT, provider),
        credentials=credentials_of(settings, services) if credentials is None else _registered(credentials),
        agent=agents[0] if agents else None,
    )
    daemon = Daemon(host, ours)
    ended = anyio.Event()

    async def run() -> None:
        daemon.begin()
        await daemon.run()
        ours.close()
        ended.set()

    try:
        async with background_tasks() as tasks:
            tasks.start_soon(run)
            yield theirs
            theirs.send_eof()
            await ended.wait()
    finally:
        theirs.close()
        show_log()


@asynccontextmanager
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
    users. Relative entries of PYTHONPATH are seen from here, not from `cwd`. Leaving ends the process, in bounded time.

    Raises as `in_memory` does for settings; an app that can't be hosted fails the first call with `ConnectionFailed`.
    """
    given = _given(settings)
    argv = to_argv({"apps": RawValue([*apps], "apps"), **given})
    command = [sys.executable, "-P", "-m", "discreet", "serve", *argv]
    framing = framing_of(settings.get("framing"))
    surroundings = _absolute_paths(os.environ if env is None else env)
    async with connect(command, cwd=cwd, env=surroundings, framing=framing, timeout=timeout, stderr=stderr) as peer:
        yield peer


def framing_of(setting: str | None) -> Framing:
    """What the client speaks; a daemon that chooses by the first byte takes either."""
    return "newline" if setting == "newline" else "content-length"


def _absolute_paths(env: Mapping[str, str]) -> Mapping[str, str]:
    entries = [os.path.abspath(entry) for entry in env.get("PYTHONPATH", "").split(os.pathsep) if entry]
    return {**env, "PYTHONPATH": os.pathsep.join(entries)} if entries else env


def settings_of(settings: Mapping[str, Any]) -> Settings:
    """The settings of a daemon in memory, from the arguments of `in_memory`, which says what is raised."""
    directory = os.getcwd()
    given = _given(settings).items()
    values: dict[str, Any] = {field: parse_value(_BY_FIELD[field], value, directory) for field, value in given}
    return Settings(**values)


def _given(settings: Mapping[str, Any]) -> dict[str, RawValue]:
    """The settings as text, as flags would give them: so both ways read them by the same rules."""
    for field in settings:
        if field not in _BY_FIELD:
            raise TypeError(f"there is no setting {field}")
    return {
        field: RawValue(_text(field, value), field, typed=isinstance(value, bool))
        for field, value in settings.items()
        if value is not False and (value is not None or _BY_FIELD[field].info.none_word)
    }


def _text(field: str, value: Any) -> object:
    if _BY_FIELD[field].kind == "apps":
        return list(value)
    if value is None:
        return _BY_FIELD[field].info.none_word
    if isinstance(value, list | tuple | set | frozenset):
        return " ".join(value)
    return value if value is True else str(value)


def _registered(credentials: Mapping[str, str]) -> Mapping[str, str]:
    """Known to the scrubber, as those that a daemon reads from files."""
    for value in credentials.values():
        register(value)
    return credentials
