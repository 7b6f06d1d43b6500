"""Connects a `Peer` to a server in one `async with`: to a child process, to a URL, or over any byte transport."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import TYPE_CHECKING, Final, TypedDict, final

import anyio
import msgspec

from ..async_block import async_block
from ..framing.events import Framing
from ..framing.transports.interface import ByteTransport
from .connection import Connection, open_connection
from .connector import ClientConnection, Connector, FixedConnector, RestartPolicy, restarting
from .dialects import FAREWELL_SECONDS, PLAIN, Dialect
from .errors import ClientError, ConnectionFailed, ConnectionLoss, DeclaredErrors
from .incoming import Handlers
from .peer import DEFAULT_TIMEOUT, CallDefaults, Peer
from .process import EndBounds, spawn
from .retry import IsQuery, RetryPolicy
from .validation import (
    StderrMode,
    StrPath,
    check_callback,
    check_command,
    check_errors,
    check_framing,
    check_instance,
    check_stderr,
    check_strings,
    check_timeout,
    check_unused,
    is_url,
)

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
    """Run a server and call it, or call one that serves A2A by HTTP, for the length of the block:

        async with connect(["discreet", "serve", "./app.py:files"]) as peer:
            content = await peer.call("files/read", {"path": "README.md"}, type=FileContent)

        async with connect("http://127.0.0.1:8000/") as peer:
            task = await peer.call("GetTask", {"id": task_id})

    `server` is a command, or a URL: `http://…`, `https://…` or `unix:PATH`. `timeout` (seconds per attempt, None for no limit),
    `errors`, `retry` and `service_params` are those of `attach`.

    For a command, `cwd`, `env`, `stderr` and `bounds` are those of `spawn`, `framing` and `dialect` those of `attach`. Leaving
    the block ends the child in bounded time. Combine `spawn` and `attach` yourself if you need the process.

    A server that dies stays dead, and calls that waited for it raise `ConnectionFailed`. With `restart`, the next call starts it
    again, and so does each further attempt of `retry`. Each new server gets the handshake; handlers stay registered. Streams are
    never resumed.

    For a URL, service params are sent as headers. `ssl_context` says which certificates of `https` servers are trusted (None:
    the system's). Nothing is sent before the first call. Leaving the block closes all connections. Subscriptions to tasks are
    resumed after a lost connection if the server numbers its events.

    Raises `ConnectionFailed` if the command can't be run or the handshake fails; the calls report a server that dies later.
    Raises `TypeError` and `ValueError` for wrong arguments, before anything is started, and `ImportError` for a URL if h11 is
    not installed.
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
        from .http.a2a import A2A, is_query
        from .http.connection import open_http

        async with open_http(address, A2A(), ssl_context=ssl_context) as http:
            yield endpoint.fixed_peer(http, is_query=is_query)
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


async def _ended_by_server() -> ConnectionLoss:
    return ConnectionLoss("the server ended the connection")


@async_block
async def attach(
    transport: ByteTransport,
    *,
    framing: Framing | None = None,
    dialect: Dialect = PLAIN,
    timeout: float | None = DEFAULT_TIMEOUT,
    errors: DeclaredErrors = (),
    retry: RetryPolicy | None = None,
    service_params: Mapping[str, str] | None = None,
    explain: Callable[[], Awaitable[ConnectionLoss]] = _ended_by_server,
) -> AsyncGenerator[Peer]:
    """Connect a `Peer` over a transport for the length of the block. The caller closes the transport.

    `dialect` is the protocol on top of JSON-RPC that the server speaks: `PLAIN`, `LSP`, `MCP`, `ACP` or one of your own.
    `framing` overrides the dialect's framing. `timeout` is the default of `Peer.call`, in seconds. `errors` and
    `service_params` are added to those of every call. `retry` says when a failed call is made again. `explain` is called once,
    after the input ended, and returns the reason.

    Leaving the block gives the server up to a second to take messages that were already sent. Calls of other tasks that still
    wait then raise `ConnectionFailed`.

    Raises `ConnectionFailed` if the dialect's handshake fails, and `TypeError` or `ValueError` for wrong arguments.
    """
    if not callable(getattr(transport, "receive_nowait", None)):
        raise TypeError(f"transport must be a byte transport, not {transport!r}; for a command there is `connect`")
    check_callback("explain", explain)
    endpoint = Endpoint(
        dialect, framing=framing, timeout=timeout, errors=errors, retry=retry, service_params=service_params
    )
    async with endpoint.open(transport, explain) as connection:
        yield endpoint.fixed_peer(connection)


@final
class Endpoint:
    """This side of the wire: the handlers, call defaults and request ids that every connection of one `connect` shares.

    All its peers count request ids on from each other, because some protocols forbid using an id twice. Raises `TypeError`
    and `ValueError` for wrong arguments.
    """

    def __init__(
        self,
        dialect: Dialect,
        *,
        framing: Framing | None = None,
        timeout: float | None = None,
        errors: DeclaredErrors = (),
        retry: RetryPolicy | None = None,
        service_params: Mapping[str, str] | None = None,
    ) -> None:
        check_instance("dialect", dialect, Dialect)
        check_framing(framing)
        check_framing(dialect.framing, "dialect.framing")
        check_timeout(timeout)
        check_errors(errors)
        check_instance("retry", retry, RetryPolicy, optional=True)
        check_strings("service_params", service_params)
        self._framing: Framing = framing or dialect.framing
        self._handlers = Handlers(dialect)
        self._defaults = CallDefaults(timeout, tuple(errors), retry, dict(service_params or {}))
        self._ids = count(1)

    @asynccontextmanager
    async def open(
        self, transport: ByteTransport, explain: Callable[[], Awaitable[ConnectionLoss]]
    ) -> AsyncGenerator[Connection]:
        """Open a connection and do the handshake. Raises `ConnectionFailed` if the handshake fails."""
        async with open_connection(transport, self._handlers, framing=self._framing, explain=explain) as connection:
            await self._shake_hands(connection)
            try:
                yield connection
            finally:
                await self._say_farewell(connection)

    def peer(self, connector: Connector, *, is_query: IsQuery | None = None) -> Peer:
        """Make a peer that takes connections from `connector`. Without `is_query` it asks the server which operations are
        queries."""
        return Peer(connector, self._handlers, self._defaults, ids=self._ids, is_query=is_query)

    def fixed_peer(self, connection: ClientConnection, *, is_query: IsQuery | None = None) -> Peer:
        """Make a peer over this connection only."""
        return self.peer(FixedConnector(connection), is_query=is_query)

    async def _shake_hands(self, connection: Connection) -> None:
        shake_hands = self._handlers.dialect.handshake
        if shake_hands is None:
            return
        try:
            await shake_hands(self._peer_without_retries(connection))
        except ConnectionFailed:
            raise
        except ClientError as exc:
            raise ConnectionFailed(ConnectionLoss(f"the handshake failed: {exc}")) from exc

    async def _say_farewell(self, connection: Connection) -> None:
        farewell = self._handlers.dialect.farewell
        if farewell is None or not connection.usable:
            return
        with anyio.move_on_after(FAREWELL_SECONDS, shield=True), suppress(ClientError):
            await farewell(self._peer_without_retries(connection))

    def _peer_without_retries(self, connection: Connection) -> Peer:
        no_retries = msgspec.structs.replace(self._defaults, retry=None)
        return Peer(FixedConnector(connection), self._handlers, no_retries, ids=self._ids)
