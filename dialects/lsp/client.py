"""Calls language servers with the structs of LSP, after the handshake of an editor (LSP 3.17, section "Initialize Request")."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Unpack, final

from ...async_block import async_block
from ...client.dialects import CLIENT_INFO, LSP
from ...daemon.documents import ENCODINGS
from ..client import (
    AsyncCaller,
    BlockingCaller,
    Given,
    Opening,
    ServerOptions,
    Types,
    connected,
    given,
    with_capabilities,
)
from .client_documents import BlockingDocuments, Documents
from .generated.client import TAKEN, Handlers, Methods
from .generated.names import HOMES
from .generated.tables import NOTIFICATIONS, REQUESTS

if TYPE_CHECKING:
    from ...client.blocking import LoopThread
    from ...client.peer import Peer
    from ...client.validation import Backend, StrPath
    from ...framing.transports.interface import ByteTransport

__all__ = ["BlockingServer", "Handlers", "Server", "connect", "connect_blocking"]

_TYPES: Final = Types(lambda name: getattr(import_module(f".generated.{HOMES[name]}", __package__), name))

OWN_SYNC: Final = "textDocument.synchronization.dynamicRegistration"
"""Not announced: `Documents` goes by what the server says in its answer to `initialize`."""


class LspOptions(ServerOptions, total=False):
    """The options of `connect`."""

    handlers: Handlers
    root: StrPath | None
    capabilities: Mapping[str, Any]  # Any: JSON
    initialization_options: object


@final
class Server(Methods, AsyncCaller):
    """A language server. Its methods take and return the structs of `discreet.lsp`. `documents` are those that
    are open there."""

    def __init__(self, peer: Peer, opening: Opening) -> None:
        super().__init__(peer, opening)
        self.documents: Final = Documents(self.notify, self.capabilities)


@final
class BlockingServer(Methods, BlockingCaller):
    """A language server, for programs without async: see `Server`."""

    def __init__(self, server: Server, loop: LoopThread) -> None:
        super().__init__(server, loop)
        self.documents: Final = BlockingDocuments(server.documents, loop)


@async_block
async def connect(server: Sequence[StrPath] | ByteTransport, **options: Unpack[LspOptions]) -> AsyncGenerator[Server]:
    """Run a language server and call it with types, for the length of the block:

        async with lsp.connect(["clangd"], root=".") as server:
            await server.documents.open(uri, "cpp", text)
            found = await server.text_document_hover(lsp.HoverParams(text_document=…, position=…))

    `server` is a command, or a byte transport to a server that runs. `handlers` take what the server sends. `root` is the
    folder of the workspace. `capabilities`, as JSON, come before those that this client announces by itself: all encodings of
    positions, and what the handlers stand for. A server may register methods later only with `client_register_capability`
    among the handlers. `cwd`, `env`, `stderr`, `bounds` and `timeout` are those of `discreet.client.connect`.

    Leaving the block sends `shutdown` and `exit`, and ends the process in bounded time.

    Raises `ConnectionFailed` if the server can't be run or the handshake fails, and `TypeError` and `ValueError` for wrong
    arguments, before anything is started.
    """
    async with _opened(server, options, in_threads=False) as opened:
        yield opened


@contextmanager
def connect_blocking(
    server: Sequence[StrPath], *, backend: Backend = "asyncio", **options: Unpack[LspOptions]
) -> Generator[BlockingServer]:
    """Run a language server and call it without async: see `connect`.

    Handlers of requests are plain functions and run in worker threads. Handlers of notifications run on the thread of the
    event loop; they must return at once and must not use the server.
    """
    from ...client.blocking import on_loop_thread  # late: most clients are asynchronous

    with on_loop_thread(_opened(server, options, in_threads=True), backend) as (opened, loop):
        yield BlockingServer(opened, loop)


@async_block
async def _opened(
    server: Sequence[StrPath] | ByteTransport, options: LspOptions, *, in_threads: bool
) -> AsyncGenerator[Server]:
    handlers = given(Handlers, options.pop("handlers", Handlers()), TAKEN)
    opening = Opening(_TYPES, handlers, _hello(handlers, options), then="initialized", in_threads=in_threads)
    async with connected(server, LSP, opening, options) as peer:
        yield Server(peer, opening)


def _hello(handlers: Given, options: LspOptions) -> dict[str, Any]:
    """Return the params of `initialize`, and take from the options what stands in them."""
    announced = [path for message, _ in handlers for path in message.capabilities]
    if any(message.method == "client/registerCapability" for message, _ in handlers):
        announced += registrable()
    capabilities = with_capabilities(options.pop("capabilities", {}), ["general.positionEncodings"], [*ENCODINGS])
    root = options.pop("root", None)
    folder = None if root is None else Path(os.path.abspath(os.fsdecode(root)))
    return {
        "processId": os.getpid(),
        "clientInfo": CLIENT_INFO,
        "rootUri": folder and folder.as_uri(),
        "workspaceFolders": folder and [{"uri": folder.as_uri(), "name": folder.name}],
        "capabilities": with_capabilities(capabilities, announced),
        "initializationOptions": options.pop("initialization_options", None),
    }


def registrable() -> list[str]:
    """Return the paths of the capabilities that let a server register methods later."""
    rows = (*REQUESTS.values(), *NOTIFICATIONS.values())
    return sorted({row.dynamic_registration for row in rows} - {"", OWN_SYNC})
