"""Checks the headers of a request: the accepted media types, and since 2026-07-28 the facts of the body that they repeat."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Raw

from ...dialects.mcp.revision import own_error
from ...errors.decoders import DECODE_ERRORS, decoder_for

if TYPE_CHECKING:
    from ...daemon.operations.request import Request
    from ...dialects.mcp.tools import Tool
    from ...errors.failures import Failure
    from ..requests import GatewayRequest

VERSION: Final = "mcp-protocol-version"
SESSION: Final = "mcp-session-id"
LAST_EVENT: Final = "last-event-id"

NAMING: Final = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}
"""The methods whose params `Mcp-Name` repeats a member of, and which."""
_INTEGER: Final = re.compile(r"-?\d{1,16}(\.0*)?", re.ASCII)
_MISMATCH: Final = -32020
_BEGIN, _END = "=?base64?", "?="


def accepts(request: GatewayRequest, *media_types: str) -> bool:
    """Whether the client takes all of these (RFC 9110, section 12.5.1). One that says nothing takes anything."""
    given = request.all_of("accept")
    if not given:
        return True
    ranges = {part.partition(";")[0].strip().lower() for line in given for part in line.split(",")}
    return all(not ranges.isdisjoint({kind, f"{kind.partition('/')[0]}/*", "*/*"}) for kind in media_types)


def mismatch(
    request: GatewayRequest, call: Request, version: object, tool_of: Callable[[str], Tool | None]
) -> Failure | None:
    """Why a request of 2026-07-28 is refused whose headers do not repeat what its body says (section Server Validation).
    `tool_of(name)` is the tool, if the caller may call it.
    """
    for header, wanted in _repeated(call, version, tool_of):
        if not _says(_decoded(request.all_of(header.lower())), wanted):
            return own_error(_MISMATCH, "Header mismatch", {"header": header})
    return None


def _repeated(call: Request, version: object, tool_of: Callable[[str], Tool | None]) -> Iterator[tuple[str, object]]:
    """The headers, and the values that they must have; None for those that must not be there."""
    yield "MCP-Protocol-Version", version
    yield "Mcp-Method", call.method
    params = _members(call.params or b"{}")
    named = params.get(NAMING.get(call.method, ""))
    if not isinstance(named, str):  # then the method says what is wrong
        return
    yield "Mcp-Name", named
    tool = tool_of(named) if call.method == "tools/call" else None
    if tool is not None and tool.mirrored:
        for header, path in tool.mirrored.items():
            value: Any = _members(tool.arguments(Raw(msgspec.json.encode(params.get("arguments", {})))))
            for name in path:
                value = value.get(name) if isinstance(value, dict) else None
            yield header, value


def _members(text: Raw | bytes) -> dict[str, Any]:  # Any: JSON
    """The members of an object; none of anything else."""
    try:
        found: dict[str, Any] = decoder_for(dict[str, Any])(text)
    except DECODE_ERRORS:
        return {}
    return found


def _says(given: str | None, wanted: object) -> bool:
    match wanted:
        case bool():
            return given == str(wanted).lower()
        case int():  # 42.0 says 42
            return (
                given is not None and _INTEGER.fullmatch(given) is not None and int(given.partition(".")[0]) == wanted
            )
        case _:
            return given == wanted


def _decoded(values: list[str]) -> str | None:
    """The value of a header that came once; None for any other, and for what is no Base64 (section Value Encoding)."""
    if len(values) != 1:
        return None
    value = values[0].strip(" \t")
    if not (value.startswith(_BEGIN) and value.endswith(_END) and len(value) >= len(_BEGIN) + len(_END)):
        return value
    encoded = value[len(_BEGIN) : -len(_END)]
    try:
        found = b64decode(encoded, validate=True)
        return found.decode() if b64encode(found).decode() == encoded else None
    except ValueError:  # as are those of both codecs
        return None
