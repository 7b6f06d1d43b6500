"""Calls MCP servers with the structs of MCP, after the handshake of the revisions to 2025-11-25 (basic/lifecycle)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Unpack, final

from ...async_block import async_block
from ...client.dialects import CLIENT_INFO, MCP
from ..client import (
    AsyncCaller,
    BlockingCaller,
    Opening,
    ServerOptions,
    Taken,
    Types,
    announced,
    connected,
    given,
    refuse,
)
from .generated import messages, structs
from .generated.client import TAKEN, Handlers, Methods
from .generated.tables import LEGACY_REVISIONS

if TYPE_CHECKING:
    from ...client.validation import Backend, StrPath
    from ...framing.transports.interface import ByteTransport

__all__ = ["BlockingServer", "Handlers", "Server", "connect", "connect_blocking"]

_TYPES: Final = Types(lambda name: getattr(messages if hasattr(messages, name) else structs, name))

_CAPABILITIES: Final[dict[str, tuple[str, object]]] = {
    "sampling/createMessage": ("sampling", {}),
    "elicitation/create": ("elicitation.form", {}),
    "roots/list": ("roots.listChanged", True),
}
"""What a client announces that answers a request (2025-11-25, `ClientCapabilities`)."""

_PING: Final = Taken("ping", "dict[str, Any]", answers=True)


class McpOptions(ServerOptions, total=False):
    """The options of `connect`."""

    handlers: Handlers
    capabilities: Mapping[str, Any]  # Any: JSON


@final
class Server(Methods, AsyncCaller):
    """An MCP server. Its methods take and return the structs of `discreet.mcp`."""


@final
class BlockingServer(Methods, BlockingCaller):
    """An MCP server, for programs without async: see `Server`."""


@async_block
async def connect(server: Sequence[StrPath] | ByteTransport, **options: Unpack[McpOptions]) -> AsyncGenerator[Server]:
    """Run an MCP server and call it with types, for the length of the block:

        async with mcp.connect(["my-server"]) as server:
            result = await server.tools_call(mcp.CallToolRequestParams(name="look", arguments={"at": "it"}))

    `server` is a command, or a byte transport to a server that runs. `handlers` take what the server sends. `capabilities`, as
    JSON, come before those that this client announces by itself, for the handlers that answer requests. `cwd`, `env`, `stderr`,
    `bounds` and `timeout` are those of `discreet.client.connect`. Leaving the block closes the server's input, and ends the
    process in bounded time. A `ping` of the server is answered.

    Raises `ConnectionFailed` if the server can't be run, the handshake fails, or the server has none of the revisions that
    begin with a handshake. Raises `TypeError` and `ValueError` for wrong arguments, before anything is started.
    """
    async with _opened(server, options, in_threads=False) as opened:
        yield opened


@contextmanager
def connect_blocking(
    server: Sequence[StrPath], *, backend: Backend = "asyncio", **options: Unpack[McpOptions]
) -> Generator[BlockingServer]:
    """Run an MCP server and call it without async: see `connect`. `discreet.lsp.connect_blocking` says where handlers run."""
    from ...client.blocking import on_loop_thread  # late: most clients are asynchronous

    with on_loop_thread(_opened(server, options, in_threads=True), backend) as (opened, loop):
        yield BlockingServer(opened, loop)


@async_block
async def _opened(
    server: Sequence[StrPath] | ByteTransport, options: McpOptions, *, in_threads: bool
) -> AsyncGenerator[Server]:
    handlers = given(Handlers, options.pop("handlers", Handlers()), TAKEN)
    capabilities = announced(options.pop("capabilities", {}), handlers, _CAPABILITIES)
    hello = {"protocolVersion": LEGACY_REVISIONS[-1], "capabilities": capabilities, "clientInfo": CLIENT_INFO}
    opening = Opening(
        _TYPES,
        [*handlers, (_PING, lambda _params: {})],
        hello,
        then="notifications/initialized",
        check=_check,
        in_threads=in_threads,
    )
    async with connected(server, MCP, opening, options) as peer:
        yield Server(peer, opening)


def _check(welcome: Mapping[str, Any]) -> None:
    if welcome.get("protocolVersion") not in LEGACY_REVISIONS:
        refuse(f"the server speaks none of the revisions {', '.join(LEGACY_REVISIONS)} of MCP")
