"""Describes the servers that operations are imported from, commands and URLs. Runs commands, and asks a server once.

Knows no protocol.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

import anyio
from msgspec import Struct

from .. import call_tracing
from ..client.outbound.network import EXPECTED_PUBLIC_URL, parse_url
from ..daemon.settings.option import PREFIX
from ..daemon.tracing import BAGGAGE, trace_members
from .model import ImportFailed

if TYPE_CHECKING:
    from ..client.connector import RestartingConnector, ServerConnection, StartServer
    from ..client.process import ServerProcess
    from ..client.validation import StderrMode

T = TypeVar("T")
C = TypeVar("C", bound="ServerConnection")

StrPath: TypeAlias = "str | os.PathLike[str]"
Source: TypeAlias = "StrPath | Sequence[StrPath]"
"""A server as an author names it: a list of words, a line of them as a shell takes it, or a URL."""

SCHEMES: Final = ("http://", "https://")
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")

PRIVATE: Final = (
    "is private, which is refused; allow_private=True (--import-private, or allow-private = true in a settings file)"
    " allows it"
)
"""The end of a message about an address."""


class Command(Struct, frozen=True):
    """A server that is started. `env` is added to this process's own environment, without the settings of discreet in it."""

    words: tuple[str, ...]
    cwd: str | None = None
    env: Mapping[str, str] = {}

    @property
    def shown(self) -> str:
        """The program, without its arguments, which may hold a secret."""
        return self.words[0]


class Url(Struct, frozen=True):
    """A server that is reached by HTTP. `headers` are sent with each request. With `allow_private` its address may be one of this
    network or this machine.
    """

    url: str
    headers: Mapping[str, str] = {}
    allow_private: bool = False

    @property
    def shown(self) -> str:
        """The address without its query, which may hold a secret."""
        return self.url.partition("?")[0]


Target: TypeAlias = Command | Url


def target_of(
    kind: str,
    source: Source,
    *,
    cwd: StrPath | None = None,
    env: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    allow_private: bool = False,
) -> Target:
    """The server that is meant. `kind` says of which kind it is, for messages. `cwd` and `env` are for commands, `headers` and
    `allow_private` for URLs. Raises `ImportFailed`.
    """
    if isinstance(source, str) and source.lower().startswith(SCHEMES):
        if cwd is not None or env is not None:
            raise ImportFailed(f"{kind} behind a URL has neither cwd nor env")
        found = parse_url(source, allow_private=allow_private)
        if found == EXPECTED_PUBLIC_URL:
            raise ImportFailed(
                f"{source.partition('?')[0]}: {kind} needs a URL of a public host, and this address {PRIVATE}"
            )
        if isinstance(found, str):
            raise ImportFailed(f"{kind} needs an {found}, or a command")
        require(f"{kind} behind a URL", "http", "h11")
        return Url(source, dict(headers or {}), allow_private)
    expected = f"{kind} is a command, which is a list of words such as ['uvx', 'mcp-server-time'], or an http(s) URL"
    if isinstance(source, str) and _SCHEME.match(source):
        raise ImportFailed(f"{source.partition('?')[0]}: {expected}")
    if headers is not None:
        raise ImportFailed(f"{kind} that is a command has no headers")
    try:
        words = shlex.split(source) if isinstance(source, str) else _words(source)
    except (TypeError, ValueError):
        words = []
    if not words or not words[0] or any("\0" in word for word in words):
        raise ImportFailed(expected)
    return Command(tuple(words), None if cwd is None else os.fspath(cwd), dict(env or {}))


def _words(source: os.PathLike[str] | Sequence[StrPath]) -> list[str]:
    return [os.fspath(source)] if isinstance(source, os.PathLike) else [os.fspath(word) for word in source]


def require(what: str, extra: str, *libraries: str) -> None:
    """Raises `ImportFailed` where a library is not installed that this needs. `extra` brings it."""
    if missing := [name.replace("_", "-") for name in libraries if find_spec(name) is None]:
        raise ImportFailed(f"{what} needs {' and '.join(missing)}: pip install 'discreet[{extra}]'")


# -- commands ----------------------------------------------------------------------------------------------------------
#
# How deep mounts are nested is counted in processes and in calls: a daemon that mounts itself must come to an end.

MAX_DEPTH: Final = 8
"""Daemons that may stand behind each other. A chain that somebody builds has two or three."""

VARIABLE: Final = "_DISCREET_MOUNT_DEPTH"
"""Tells a process that is started for an import how many stand before it."""

TOO_DEEP: Final = f"mounts are nested more than {MAX_DEPTH} deep: does a daemon mount itself?"


class TooDeep(Exception):
    """One mount more would be one too many."""


def next_depth(text: str | None) -> str:
    """The depth of what stands behind, by the text of the own one, which any caller may send. Raises `TooDeep`."""
    depth = int(text) if text is not None and text.isascii() and text.isdecimal() and len(text) <= 2 else 0
    if depth >= MAX_DEPTH:
        raise TooDeep(TOO_DEEP)
    return str(depth + 1)


def trace_passed_on(service_params: Mapping[str, str]) -> dict[str, str]:
    """The caller's span and baggage. Where calls are recorded here, the client names its own span."""
    found = trace_members(service_params)
    if call_tracing.tracer is not None:
        return {name: text for name, text in found.items() if name == BAGGAGE}
    return found


def child_environment(command: Command) -> dict[str, str]:
    """The variables of the process. The daemon's own settings may hold secrets. Raises `TooDeep`."""
    own = {name: value for name, value in os.environ.items() if not name.startswith((PREFIX, f"_{PREFIX}"))}
    return {**own, **command.env, VARIABLE: next_depth(os.environ.get(VARIABLE))}


def run(command: Command, stderr: StderrMode) -> AbstractAsyncContextManager[ServerProcess]:
    """Run the command for as long as the block runs. It ends within the daemon's drain window of 2 s. Raises `ConnectionFailed`,
    before anything is started where mounts are too deep."""
    from ..client.errors import ConnectionFailed, ConnectionLoss  # late: what is kept in the cache is not asked for
    from ..client.process import EndBounds, spawn

    try:
        environment = child_environment(command)
    except TooDeep as exc:
        raise ConnectionFailed(ConnectionLoss(str(exc)), sent=False) from None
    bounds = EndBounds(eof=0.7, terminate=0.5, kill=0.5)
    return spawn(command.words, cwd=command.cwd, env=environment, stderr=stderr, bounds=bounds)


def started_again(start: StartServer[C]) -> AbstractAsyncContextManager[RestartingConnector[C]]:
    """Start a server with the first call, and again with the next one after its death, a moment later each time while it keeps
    dying, up to 5 s. It is never given up: a daemon runs for months, and whatever was wrong may be mended by then."""
    from ..client.connector import RestartPolicy, restarting  # late, as above

    return restarting(start, RestartPolicy(limit=sys.maxsize), at_once=False)


def ask_in_thread(work: Callable[[], Awaitable[T]], seconds: float) -> T:
    """The result of this in an event loop of its own, as one may run here. Raises what it raises, and `TimeoutError`."""
    outcome: list[T | BaseException] = []

    async def bounded() -> T:
        with anyio.fail_after(seconds):
            return await work()

    def run_loop() -> None:
        try:
            outcome.append(anyio.run(bounded))
        except BaseException as exc:  # noqa: BLE001 - carried to the caller's thread
            outcome.append(exc)

    thread = threading.Thread(target=run_loop, name="discreet-import", daemon=True)
    thread.start()
    thread.join()
    (found,) = outcome
    if isinstance(found, BaseException):
        raise found
    return found
