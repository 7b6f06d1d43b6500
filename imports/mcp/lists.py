"""Asks a server for all that it offers: tools, resources, templates of resources, prompts. Every list is bounded."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from msgspec import Struct

from ...client.errors import InvalidReply
from ...errors.decoders import DECODE_ERRORS, decoder_for
from .connection.conversation import Conversation, RpcError

MAX_PAGES: Final = 1000
MAX_ITEMS: Final = 10_000
"""Of one list."""
MAX_LIST_BYTES: Final = 64 * 1024 * 1024

METHOD_NOT_FOUND: Final = -32601

Item: TypeAlias = dict[str, Any]  # Any: JSON


class Listing(Struct, frozen=True):
    """What a server offers, as it says it."""

    tools: tuple[Item, ...] = ()
    resources: tuple[Item, ...] = ()
    templates: tuple[Item, ...] = ()
    prompts: tuple[Item, ...] = ()


async def list_all(conversation: Conversation) -> Listing:
    """All lists. Raises `RpcError`, `ConnectionFailed`, and `InvalidReply` for a list that has no end or is none."""
    offered = conversation.agreed.capabilities
    reads = "resources" in offered
    return Listing(
        tools=await _list(conversation, "tools") if "tools" in offered else (),
        resources=await _list(conversation, "resources") if reads else (),
        templates=await _list(conversation, "resources/templates", "resourceTemplates") if reads else (),
        prompts=await _list(conversation, "prompts") if "prompts" in offered else (),
    )


async def _list(conversation: Conversation, kind: str, member: str = "") -> tuple[Item, ...]:
    method, member = f"{kind}/list", member or kind
    found: list[Item] = []
    size = 0
    cursors: set[str] = set()
    params: dict[str, str] = {}
    for _ in range(MAX_PAGES):
        try:
            text = await conversation.request(method, params)
        except RpcError as exc:
            if exc.code == METHOD_NOT_FOUND:
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
