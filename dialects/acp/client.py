"""Calls ACP agents with the structs of ACP, after the handshake of an editor (ACP 1, section Initialization)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar, Unpack, final

import anyio

from ...async_block import async_block
from ...client.dialects import ACP, CLIENT_INFO
from ...client.errors import ClientError, RequestTimeout
from ..client import (
    AsyncCaller,
    BlockingCaller,
    Opening,
    Request,
    ServerOptions,
    Types,
    announced,
    connected,
    given,
    refuse,
    with_capabilities,
)
from .generated import structs as wire
from .generated.client import TAKEN, Handlers, Methods

if TYPE_CHECKING:
    from ...client.peer import CallOptions
    from ...client.validation import Backend, StrPath
    from ...framing.transports.interface import ByteTransport

__all__ = ["Agent", "BlockingAgent", "Handlers", "connect", "connect_blocking", "wire"]

R = TypeVar("R")

VERSION: Final = 1

CANCEL_SECONDS: Final = 1.0
"""How long the notification that cancels a turn may take, if the agent reads nothing."""

_TYPES: Final = Types(lambda name: getattr(wire, name))

_CAPABILITIES: Final[dict[str, tuple[str, object]]] = {
    "fs/read_text_file": ("fs.readTextFile", True),
    "fs/write_text_file": ("fs.writeTextFile", True),
    "elicitation/create": ("elicitation.form", {}),
}
"""What a client announces that answers a request (`ClientCapabilities`). Terminals are announced if all of their methods are
answered."""


class AcpOptions(ServerOptions, total=False):
    """The options of `connect`."""

    handlers: Handlers
    capabilities: Mapping[str, Any]  # Any: JSON


@final
class Agent(Methods, AsyncCaller):
    """An agent. Its methods take and return the structs of `discreet.acp.wire`."""

    async def request(self, request: Request[Any, R], params: object, /, **options: Unpack[CallOptions]) -> R:
        """Send a request: see `AsyncCaller.request`. A prompt has no time limit of its own. If it is cancelled, or takes longer
        than its `timeout`, the turn is cancelled (ACP 1, section Prompt Turn, Cancellation)."""
        if not isinstance(params, wire.PromptRequest):
            return await super().request(request, params, **options)
        options.setdefault("timeout", None)
        try:
            return await super().request(request, params, **options)
        except (RequestTimeout, anyio.get_cancelled_exc_class()):
            with anyio.move_on_after(CANCEL_SECONDS, shield=True), suppress(ClientError):
                await self.session_cancel(wire.CancelNotification(session_id=params.session_id))
            raise


@final
class BlockingAgent(Methods, BlockingCaller):
    """An agent, for programs without async: see `Agent`."""


@async_block
async def connect(server: Sequence[StrPath] | ByteTransport, **options: Unpack[AcpOptions]) -> AsyncGenerator[Agent]:
    """Run an agent and talk to it with types, for the length of the block:

        async with acp.connect(["my-agent"], handlers=acp.Handlers(session_update=show)) as agent:
            session = await agent.session_new(acp.wire.NewSessionRequest(cwd="/project", mcp_servers=[]))

    `server` is a command, or a byte transport to an agent that runs. `handlers` take what the agent sends. `capabilities`, as
    JSON, come before those that this client announces by itself, for the handlers that answer requests: files, and terminals
    if all of their requests are answered. `cwd`, `env`, `stderr`, `bounds` and `timeout` are those of
    `discreet.client.connect`. Leaving the block closes the agent's input, and ends the process in bounded time.

    Raises `ConnectionFailed` if the agent can't be run, the handshake fails, or the agent does not speak version 1. Raises
    `TypeError` and `ValueError` for wrong arguments, before anything is started.
    """
    async with _opened(server, options, in_threads=False) as opened:
        yield opened


@contextmanager
def connect_blocking(
    server: Sequence[StrPath], *, backend: Backend = "asyncio", **options: Unpack[AcpOptions]
) -> Generator[BlockingAgent]:
    """Run an agent and talk to it without async: see `connect`. `discreet.lsp.connect_blocking` says where handlers run."""
    from ...client.blocking import on_loop_thread  # late: most clients are asynchronous

    with on_loop_thread(_opened(server, options, in_threads=True), backend) as (opened, loop):
        yield BlockingAgent(opened, loop)


@async_block
async def _opened(
    server: Sequence[StrPath] | ByteTransport, options: AcpOptions, *, in_threads: bool
) -> AsyncGenerator[Agent]:
    handlers = given(Handlers, options.pop("handlers", Handlers()), TAKEN)
    capabilities = announced(options.pop("capabilities", {}), handlers, _CAPABILITIES)
    if {message.method for message, _ in handlers} >= {
        message.method for message in TAKEN.values() if message.method.startswith("terminal/")
    }:
        capabilities = with_capabilities(capabilities, ["terminal"])
    hello = {"protocolVersion": VERSION, "clientCapabilities": capabilities, "clientInfo": CLIENT_INFO}
    opening = Opening(_TYPES, handlers, hello, check=_check, in_threads=in_threads)
    async with connected(server, ACP, opening, options) as peer:
        yield Agent(peer, opening)


def _check(welcome: Mapping[str, Any]) -> None:
    if welcome.get("protocolVersion") != VERSION:
        refuse(f"the agent does not speak version {VERSION} of ACP")
