"""Connects to a server, which it starts as a child process or finds at a URL, and gives a `Peer` to it, in one `async with`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, TypedDict

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
from .validation import StrPath, check_command, check_instance, check_stderr, check_unused, is_url

if TYPE_CHECKING:
    from ssl import SSLContext

_BOUNDS: Final = EndBounds()


class ConnectOptions(TypedDict, total=False):
    """The options of `connect`, for what passes them on."""

    cwd: StrPath | None
    env: Mapping[str, str] | None
    stderr: StderrMode
    bounds: EndBounds
    framing: Framing | None
    dialect: Dialect
    timeout: float | None
    errors: DeclaredErrors
    retry: RetryPolicy | None
    restart: RestartPolicy | None
    service_params: Mapping[str, str] | None
    ssl_context: SSLContext | None


@async_block
async def connect(  # noqa: PLR0913 - the options of a process, of HTTP and those of calls
    server: Sequence[StrPath] | str,
    *,
    cwd: StrPath | None = None,
    env: Mapping[str, str] | None = None,
    stderr: StderrMode = "inherit",
    bounds: EndBounds = _BOUNDS,
    framing: Framing | None = None,
    dialect: Dialect = PLAIN,
    timeout: float | None = DEFAULT_TIMEOUT,
    errors: DeclaredErrors = (),
    retry: RetryPolicy | None = None,
    restart: RestartPolicy | None = None,
    service_params: Mapping[str, str] | None = None,
    ssl_context: SSLContext | None = None,
) -> AsyncGenerator[Peer]:
    """Run a server and talk to it, or talk to one that serves A2A by HTTP:

        async with connect(["discreet", "serve", "./app.py:files"]) as peer:
            content = await peer.call("files/read", {"path": "README.md"}, type=FileContent)

        async with connect("http://127.0.0.1:8000/") as peer:
            task = await peer.call("GetTask", {"id": task_id})

    `server` is a command, or a URL: `http://…`, `https://…` or `unix:PATH`. `timeout` (seconds per attempt, None for no
    limit), `errors`, `retry` and `service_params` are those of `attach`.

    Of a command, `cwd`, `env`, `stderr` and `bounds` are those of `spawn`, `framing` and `dialect` those of `attach`.
    Combine `spawn` and `attach` yourself if you need the process. Leaving the block ends the child in bounded time.
    With `restart`, the next call after the server died starts it again, and so does each further attempt of `retry`.
    Without it, a dead server stays dead. Calls that waited for the dead server raise `ConnectionFailed`, or are made again
    as `retry` says. Streams are never resumed. Handlers stay registered, and each new server gets the handshake.

    Of a URL, service params are the headers, and the certificate of an `https` server is checked by `ssl_context`, else by
    those that the system trusts. Nothing is sent before the first call. Leaving the block closes all connections. Subscriptions
    to tasks go on by themselves after a lost connection where the server numbers its events.

    Raises `ConnectionFailed` when the command can't be run or the handshake fails; the calls report a server that dies
    later. Raises `TypeError` and `ValueError` for wrong arguments, before anything is started, and `ImportError` for a URL
    where h11 is missing.
    """
    check_instance("restart", restart, RestartPolicy, optional=True)
    check_instance("bounds", bounds, EndBounds)
    check_stderr(stderr)
    endpoint = Endpoint(
        dialect, framing=framing, timeout=timeout, errors=errors, retry=retry, service_params=service_params
    )
    if isinstance(server, str) and is_url(server):
        of_command = {"cwd": cwd, "env": env, "framing": framing, "restart": restart}
        check_unused(
            "a command",
            **of_command,
            stderr=stderr if stderr != "inherit" else None,
            bounds=bounds if bounds != _BOUNDS else None,
            dialect=dialect if dialect != PLAIN else None,
        )
        from .http.wire import parse_address, require_http  # late: HTTP takes time to load

        address = parse_address(server)
        require_http()
        from .http.a2a import A2A_KINDS
        from .http.connection import open_http

        async with open_http(address, ssl_context=ssl_context) as http:
            yield endpoint.fixed_peer(http, kinds=A2A_KINDS)
        return
    check_command(server)
    check_unused("a URL", ssl_context=ssl_context)

    @asynccontextmanager
    async def start_server() -> AsyncGenerator[Connection]:
        async with (
            spawn(server, cwd=cwd, env=env, stderr=stderr, bounds=bounds) as process,
            endpoint.open(process, process.explain) as connection,
        ):
            yield connection

    if restart is None:
        async with start_server() as connection:
            yield endpoint.fixed_peer(connection)
    else:
        async with restarting(start_server, restart) as connector:
            yield endpoint.peer(connector)
