"""Asks an MCP server for what it offers before there is an event loop: in a thread of its own, within a time limit."""

from __future__ import annotations

import threading
from typing import Final

import anyio

from ...client.errors import ClientError
from ...errors.exceptions import FailureError
from ...errors.printable import cut, printable
from ...errors.redaction import scrub
from ..model import ImportFailed
from .connection.connector import Connector, Endpoint
from .connection.conversation import RpcError
from .connection.server_messages import ServerMessages
from .lists import list_all
from .model import McpImport, Target, Url
from .reading import read_listing

SHOWN_CHARACTERS: Final = 200
"""Of the last line of the server's stderr."""

READ_SECONDS: Final = 10.0
"""How long it may take until a server has started and listed what it offers."""


def read_mcp(target: Target, name: str, *, token: str | None = None, seconds: float = READ_SECONDS) -> McpImport:
    """What the server offers. Starts it, asks it, and ends it. Blocks.

    `name` is that of the import, for the log. Raises `ImportFailed`, in one line.
    """
    outcome: list[McpImport | BaseException] = []

    def work() -> None:
        try:
            outcome.append(anyio.run(_read, target, name, token, seconds))
        except BaseException as exc:  # noqa: BLE001 - for the thread that waits
            outcome.append(exc)

    thread = threading.Thread(target=work, name="import-mcp", daemon=True)
    thread.start()
    thread.join()
    found = outcome[0]
    if isinstance(found, McpImport):
        return found
    raise found


async def _read(target: Target, name: str, token: str | None, seconds: float) -> McpImport:
    def headers() -> dict[str, str]:
        return {} if token is None else {"authorization": f"Bearer {token}"}

    server = ServerMessages(name)
    opening = Connector(Endpoint(target, server, headers), seconds=seconds)
    try:
        with anyio.fail_after(seconds):
            async with opening.open() as conversation:
                return read_listing(await list_all(conversation), conversation.agreed, by_http=isinstance(target, Url))
    except TimeoutError:
        reason = f"it did not answer within {seconds:g} s"
    except RpcError as exc:
        reason = f"it refused to list what it offers with the error {exc.code}"
    except FailureError:
        reason = "it did not list what it offers"
    except ClientError as exc:
        reason = str(exc)
    told = f"; its stderr ends: {scrub(cut(server.last_line, SHOWN_CHARACTERS))}" if server.last_line else ""
    about = reason.removeprefix(f"{target.shown}: ")
    raise ImportFailed(f"MCP server {target.shown}: {printable(about)}{told}")
