"""What was probably meant where a server refuses a call. Asks the server what it has, and words the end of a line."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from ...a2a.methods import METHODS
from ...client import LSP, MCP, PLAIN, ClientError, Peer, RemoteError
from ...client.peer import LISTING_SECONDS
from ...daemon.settings import Settings
from ...errors.decoders import convert
from ...errors.nearest import closest_match
from .request import RemoteCall

SUGGESTION_CUTOFF: Final = 0.6
"""How similar a listed method must be to an unknown one to be suggested; the ratio of `difflib`."""

MAX_COMPARED: Final = 2000
"""How many listed methods an unknown one is compared with. A comparison takes about 10 µs."""

MAX_NAMED: Final = 8
"""How many listed methods are named where an unknown one resembles none of them."""

_FILE_SERVICE: Final = "fs/"

_PROTOCOLS: Final = {
    **dict.fromkeys(("tools", "prompts", "resources", "completion"), "mcp"),
    **dict.fromkeys(("textDocument", "workspace", "window", "notebookDocument"), "lsp"),
    "session": "acp",
}
"""The dialect that a method belongs to, by the part of its name before the slash."""

_LISTINGS: Final = {"tools/call": "tools", "prompts/get": "prompts"}
"""The methods of MCP that take a name, and of what."""


class Operation(msgspec.Struct, frozen=True, rename="camel"):
    """The part of a `services/schema` result that is read here."""

    input_schema: dict[str, Any]  # JSON Schema
    timeout: Any = None  # seconds


class _Named(msgspec.Struct, frozen=True):
    """The part of an entry of a list that is read here."""

    name: str


async def ask_operation(peer: Peer, method: str, service_params: Mapping[str, str] | None) -> Operation:
    """Return what the server says of an operation. Raises `ClientError`."""
    named = {"name": method.removeprefix("/")}
    return await peer.call(
        "services/schema", named, type=Operation, timeout=LISTING_SECONDS, service_params=service_params
    )


async def methods_hint(peer: Peer, call: RemoteCall) -> str:
    """For a method that is not there: the most similar one, or if none is similar enough, what there is instead."""
    if call.dialect is MCP:
        return "; a tool is called with tools/call name=… arguments='{…}', and tools/list names them"
    if call.dialect not in (PLAIN, LSP):
        return ""
    if isinstance(call.server, str):
        near = "" if call.method in METHODS else _nearest(call.method, sorted(METHODS))
        if near or "/" not in call.method:
            return f"; nearest: {near}" if near else ""
        return (
            "; by URL the methods of an agent are called; an operation is "
            f"POST {call.server.rstrip('/')}/operations/{call.method.removeprefix('/')} where http-operations is on"
        )
    listed = await _names(peer, call, "services/list")
    known = [] if listed is None or call.dialect is LSP else await _names(peer, call, "listMethods") or []
    if near := _nearest(call.method, [*(listed or ()), *known]):
        return f"; nearest: {near}"
    if (hint := _dialect_hint(call)) or listed is None:
        return hint
    if not listed:
        return "; the server lists no operations; an agent is called with SendMessage, and listMethods names the rest"
    is_file_service = call.is_discreet and all(name.startswith(_FILE_SERVICE) for name in listed)
    return f"; there is {_some(listed)}" + (": the file service; --app names another app" if is_file_service else "")


async def names_hint(peer: Peer, call: RemoteCall) -> str:
    """For refused params: the most similar tool or prompt of MCP, or what there is, if the named one is not there."""
    what = _LISTINGS.get(call.method) if call.dialect is MCP else None
    name = call.params.text_of("name")
    if what is None or name is None:
        return ""
    try:
        page = await _ask(peer, call, f"{what}/list", dict[str, Any])
        there = [row.name for row in convert(page.get(what), list[_Named])]
    except (ClientError, msgspec.ValidationError):
        return ""
    if name in there or "nextCursor" in page:
        return ""
    near = _nearest(name, there)
    return f"; nearest: {near}" if near else f"; there is {_some(there)}" if there else f"; there are no {what}"


async def deadline_hint(peer: Peer, call: RemoteCall) -> str:
    """For a call whose deadline passed on the server: that deadline, if the operation tells its own."""
    try:
        timeout = (await ask_operation(peer, call.method, call.service_params)).timeout
    except ClientError:
        return ""
    return f"; the operation's own deadline is {timeout:g} s" if isinstance(timeout, int | float) else ""


def oversize_hint(call: RemoteCall) -> str:
    """For a request that is larger than the server takes."""
    if not call.is_discreet:
        return "; the request is larger than the server takes"
    return f"; DISCREET_MAX_MESSAGE_BYTES sets the limit (default: {Settings().max_message_bytes})"


def handshake_hint(call: RemoteCall, error: RemoteError) -> str:
    """For a server that answers nothing before its client has said hello."""
    if call.dialect is not PLAIN or "initializ" not in error.message.lower():
        return ""
    return _dialect_hint(call) or "; its protocol begins with a handshake: --dialect lsp"


async def _names(peer: Peer, call: RemoteCall, method: str) -> list[str] | None:
    """The names that a list of the server has; None where it has no such list."""
    try:
        return [row.name for row in await _ask(peer, call, method, list[_Named])]
    except ClientError:
        return None


async def _ask(peer: Peer, call: RemoteCall, method: str, kind: Any) -> Any:  # as the type says
    return await peer.call(method, type=kind, timeout=LISTING_SECONDS, service_params=call.service_params)


def _dialect_hint(call: RemoteCall) -> str:
    meant = _PROTOCOLS.get(call.method.partition("/")[0]) if call.dialect is PLAIN else None
    return f"; a method of another protocol: --dialect {meant}" if meant else ""


def _nearest(name: str, known: Sequence[str]) -> str:
    """The most similar one; empty if it resembles the name in nothing but its namespace."""
    longest = 3 * len(name)  # a longer one can't reach the cutoff
    near = closest_match(name, [one for one in known[:MAX_COMPARED] if len(one) <= longest], cutoff=SUGGESTION_CUTOFF)
    (space, _, last), (space_of_near, _, last_of_near) = name.rpartition("/"), near.rpartition("/")
    if space and space == space_of_near and not closest_match(last, [last_of_near], cutoff=SUGGESTION_CUTOFF):
        return ""
    return near


def _some(names: Sequence[str]) -> str:
    return ", ".join(sorted(names[:MAX_COMPARED])[:MAX_NAMED]) + (", …" if len(names) > MAX_NAMED else "")
