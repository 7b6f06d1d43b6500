"""Asks a server for all that it offers: tools, resources, templates of resources, prompts. Every list is bounded."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from ...client.errors import ClientError, InvalidReply, RemoteError
from ...errors.codes import METHOD_NOT_FOUND
from ...errors.decoders import DECODE_ERRORS, decoder_for
from ...errors.exceptions import FailureError
from ...errors.printable import cut, printable
from ...errors.redaction import scrub
from ..asking import ask_in_thread
from ..model import ImportFailed
from .model import Item, Listing, McpImport, Target, Url
from .reading import read_listing
from .server_messages import ServerMessages
from .session import Opener, Session

MAX_PAGES: Final = 1000
MAX_ITEMS: Final = 10_000
"""Of one list."""
MAX_LIST_BYTES: Final = 64 * 1024 * 1024

SHOWN_CHARACTERS: Final = 200
"""Of the last line of the server's stderr."""

READ_SECONDS: Final = 10.0
"""How long it may take until a server has started and listed what it offers."""


def read_mcp(target: Target, name: str, *, token: str | None = None, seconds: float = READ_SECONDS) -> McpImport:
    """What the server offers. Starts it, asks it, and ends it. Blocks.

    `name` is that of the import, for the log. Raises `ImportFailed`, in one line.
    """
    server = ServerMessages(name)
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    opener = Opener(target, server, headers=lambda: headers, seconds=seconds)

    async def ask() -> McpImport:
        async with opener.open() as session:
            return await list_again(session, target)

    try:
        return ask_in_thread(ask, seconds)
    except TimeoutError:
        reason = f"it did not answer within {seconds:g} s"
    except RemoteError as exc:
        reason = f"it refused to list what it offers with the error {exc.number}"
    except FailureError:
        reason = "it did not list what it offers"
    except ClientError as exc:
        reason = str(exc)
    told = f"; its stderr ends: {scrub(cut(server.last_line, SHOWN_CHARACTERS))}" if server.last_line else ""
    about = reason.removeprefix(f"{target.shown}: ")
    raise ImportFailed(f"MCP server {target.shown}: {printable(about)}{told}")


async def list_again(session: Session, target: Target) -> McpImport:
    """What a server offers now. Raises as `list_all` does."""
    return read_listing(await list_all(session), session.agreed, by_http=isinstance(target, Url))


async def list_all(session: Session) -> Listing:
    """All lists. Raises `RemoteError`, `ConnectionFailed`, and `InvalidReply` for a list that has no end or is none."""
    offered = session.agreed.capabilities
    reads = "resources" in offered
    return Listing(
        tools=await _list(session, "tools") if "tools" in offered else (),
        resources=await _list(session, "resources") if reads else (),
        templates=await _list(session, "resources/templates", "resourceTemplates") if reads else (),
        prompts=await _list(session, "prompts") if "prompts" in offered else (),
    )


async def _list(session: Session, kind: str, member: str = "") -> tuple[Item, ...]:
    method, member = f"{kind}/list", member or kind
    found: list[Item] = []
    size = 0
    cursors: set[str] = set()
    params: dict[str, str] = {}
    for _ in range(MAX_PAGES):
        try:
            text = await session.request(method, params)
        except RemoteError as exc:
            if exc.number == METHOD_NOT_FOUND:
                return tuple(found)  # many servers have resources but no templates
            raise
        page = _page(text, method, member)
        size += memoryview(text).nbytes
        found += page.items
        if not page.cursor:
            return tuple(found)
        if page.cursor in cursors:
            raise InvalidReply(f"{method} names the same page twice")
        if len(found) > MAX_ITEMS or size > MAX_LIST_BYTES:
            break
        cursors.add(page.cursor)
        params = {"cursor": page.cursor}
    raise InvalidReply(f"{method} has more than {MAX_PAGES} pages, {MAX_ITEMS} entries or {MAX_LIST_BYTES} bytes")


class _Page(Struct, frozen=True):
    items: list[Item]
    cursor: str


def _page(text: Any, method: str, member: str) -> _Page:
    try:
        members = decoder_for(dict[str, Any])(text)
    except DECODE_ERRORS:
        members = {}
    items = members.get(member)
    cursor = members.get("nextCursor") or ""
    if not isinstance(items, list) or not isinstance(cursor, str):
        raise InvalidReply(f"the answer to {method} is no list")
    return _Page([item for item in items if isinstance(item, dict)], cursor)
