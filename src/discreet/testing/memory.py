"""Runs a daemon for a test, in the test's event loop or in a process of its own, and connects a peer to it.

Owns how the one in memory begins and ends. The settings are keyword arguments, read by the same rules as flags; in memory
without the environment and without files.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import anyio

from ..async_block import async_block
from ..client import Peer, attach, connect
from ..client.peer import DEFAULT_TIMEOUT
from ..client.task_group import background_tasks
from ..client.validation import StderrMode, StrPath, check_strings
from ..daemon.daemon import Daemon
from ..daemon.host import Host
from ..daemon.hosted_agent import AgentDeclaration
from ..daemon.hosting import access_of, credentials_of, missing_of_provider
from ..daemon.logs import log
from ..daemon.logs.line import fallback_line
from ..daemon.logs.logger import RANK, LogEvent
from ..daemon.logs.render import Renderer
from ..daemon.logs.sink import safe_call
from ..daemon.operations.access import PARENT, Access, IdentityProvider
from ..daemon.operations.service import DeclarationError, Service
from ..daemon.settings import Settings
from ..daemon.settings.keywords import from_keywords
from ..daemon.settings.option import RawValue, parse_value
from ..daemon.settings.table import OPTION_OF
from ..errors.redaction import register
from ..flags import to_argv
from ..framing.events import Framing
from ..framing.transports.interface import ByteTransport
from ..framing.transports.memory import memory_pair
from ..version import __version__


def settings_of(arguments: Mapping[str, Any]) -> Settings:
    """Return the settings of a daemon in memory. Raises `TypeError` for an unknown one, `UsageError` for a wrong value."""
    directory = os.getcwd()
    values: dict[str, Any] = {
        field: parse_value(OPTION_OF[field], given, directory) for field, given in from_keywords(arguments).items()
    }
    return Settings(**values)


def flags_of(apps: tuple[str, ...], arguments: Mapping[str, Any], directory: StrPath) -> list[str]:
    """Return the arguments of a `discreet serve` that hosts these apps and runs in this directory. Raises as `settings_of`."""
    values = {field: value for field, value in from_keywords(arguments).items() if value.value is not False}
    for field, given in values.items():
        parse_value(OPTION_OF[field], given, os.path.abspath(directory))
    return to_argv({"apps": RawValue([*apps], "apps"), **values})


def client_framing(settings: Settings, hosted: Sequence[object] = ()) -> Framing:
    """Return the framing for the client of a daemon that hosts these. A daemon with `auto` accepts either."""
    dialect: str | None = settings.dialect
    for found in hosted:
        if isinstance(found, Service):
            dialect = dialect or found.dialect
    return "newline" if settings.framing_in(dialect or "plain") == "newline" else "content-length"


if TYPE_CHECKING:
    from ..agents import Agent


@async_block
async def in_memory(
    *hosted: Service | Agent,
    timeout: float | None = DEFAULT_TIMEOUT,
    provider: IdentityProvider | None = None,
    credentials: Mapping[str, str] | None = None,
    **settings: Any,  # fields of `Settings`, each of its own type
) -> AsyncGenerator[Peer]:
    """Connect a peer to a daemon in this event loop that serves these services, and at most one agent:

        async with in_memory(notes, scopes=["notes:read"]) as peer:
            assert await peer.call("notes/count", type=int) == 0

    `timeout` is how long a call waits, in seconds (None: no limit). The settings are those of docs/settings.md with `_` for
    `-`. Settings of the process have no effect, and neither the environment nor a file is read. `provider` and `credentials`
    are the objects that the settings `identity` and `credential` name.

    Leaving the block ends the daemon's input. Requests that still run have the drain window to finish. Log events of level
    warning and above are written to `sys.stderr`. An exception that leaves the block cancels everything at once.

    Raises `DeclarationError` for services that can't be served together, `UsageError` for a wrong value of a setting, and
    `TypeError` for an unknown setting and for an argument that is no service or agent (for an app by its name, see `spawned`).
    """
    chosen = settings_of(settings)
    async with (
        memory_daemon(hosted, chosen, provider=provider, credentials=credentials) as transport,
        attach(transport, framing=client_framing(chosen, hosted), timeout=timeout) as peer,
    ):
        yield peer


@async_block
async def memory_daemon(
    hosted: Sequence[Service | Agent],
    settings: Settings,
    *,
    provider: IdentityProvider | None,
    credentials: Mapping[str, str] | None,
) -> AsyncGenerator[ByteTransport]:
    """The client's end of the pipes to a daemon, for tests that use no `Peer`. Otherwise as `in_memory`."""
    check_hosted(hosted)
    check_strings("credentials", credentials)
    if provider is not None and (missing := missing_of_provider(provider)):
        raise TypeError(f"provider needs {missing}")
    daemon_end, client_end = memory_pair()
    daemon = _daemon(hosted, settings, daemon_end, provider=provider, credentials=credentials)
    ended = anyio.Event()

    async def run() -> None:
        daemon.begin()
        await daemon.run()
        daemon_end.close()
        ended.set()

    try:
        async with background_tasks() as tasks:
            tasks.start_soon(run)
            yield client_end
            client_end.send_eof()
            await ended.wait()
    finally:
        client_end.close()
        write_pending_log()


def check_hosted(hosted: Sequence[object]) -> None:
    """Raises `TypeError` for anything but services and agents."""
    for each in hosted:
        if not isinstance(each, Service | AgentDeclaration):
            instead = "; for an app by its name there is `spawned`" if isinstance(each, str) else ""
            raise TypeError(f"only services and agents can be hosted here, not {type(each).__name__}{instead}")


def refuse_event_loop(function: str) -> None:
    """Raises `RuntimeError` where an event loop runs, for a function that runs one of its own."""
    try:
        anyio.get_cancelled_exc_class()
    except RuntimeError:  # no event loop runs here
        return
    raise RuntimeError(f"{function} runs an event loop of its own: call it in a plain function, not in an async test")


def _daemon(
    hosted: Sequence[Service | Agent],
    settings: Settings,
    transport: ByteTransport,
    *,
    provider: IdentityProvider | None,
    credentials: Mapping[str, str] | None,
) -> Daemon:
    services = [each for each in hosted if isinstance(each, Service)]
    agents = [each for each in hosted if not isinstance(each, Service)]
    if len(agents) > 1:
        raise DeclarationError("a daemon hosts at most one agent")
    host = Host(
        services,
        settings,
        version=__version__,
        access=access_of(settings) if provider is None else Access(PARENT, provider),
        credentials=credentials_of(settings, services) if credentials is None else _registered(credentials),
        agent=agents[0] if agents else None,
    )
    return Daemon(host, transport)


def _registered(credentials: Mapping[str, str]) -> Mapping[str, str]:
    """Register the credentials with the scrubber, as a daemon does with those that it reads from files."""
    for value in credentials.values():
        register(value)
    return credentials


# The log of a daemon in memory, for readers of a failed test. Leaves the log alone where it is written anyway.


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


@async_block
async def spawned(
    *apps: str,
    cwd: StrPath | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float | None = DEFAULT_TIMEOUT,
    stderr: StderrMode = "inherit",
    **settings: Any,  # as in `in_memory`
) -> AsyncGenerator[Peer]:
    """Connect a peer to `discreet serve APP…`, run by this Python in the directory `cwd` (None: this one).

        async with spawned("./app.py:notes", cwd=project, scopes=["notes:read"]) as peer:
            assert await peer.call("notes/count", type=int) == 0

    The settings become flags. The environment `env` (None: this one) and a settings file in `cwd` count, too. Leaving the
    block ends the process in bounded time.

    Raises as `in_memory` does for settings. For an app that can't be served, the first call raises `ConnectionFailed`.
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
