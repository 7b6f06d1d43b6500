"""What the headers of a request must say: which media types are accepted, and since 2026-07-28 what its body says."""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec import Raw, Struct

from ....errors.type_building import DECODE_ERRORS, decoder_for
from ...dialects.mcp.era import own_error

if TYPE_CHECKING:
    from starlette.requests import Request

    from ....errors.failures import Failure
    from ...rpc.envelope import Call

VERSION: Final = "mcp-protocol-version"
SESSION: Final = "mcp-session-id"
LAST_EVENT: Final = "last-event-id"

_NAMED: Final[Mapping[str, str]] = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""The member of the params that `Mcp-Name` repeats."""
_MISMATCH: Final = -32020
_BEGIN, _END = "=?base64?", "?="


def accepts(request: Request, *media_types: str) -> bool:
    """Whether the client takes all of these (RFC 9110, section 12.5.1). One that says nothing takes anything."""
    given = request.headers.getlist("accept")
    if not given:
        return True
    ranges = {part.partition(";")[0].strip().lower() for line in given for part in line.split(",")}
    return all(not ranges.isdisjoint({kind, f"{kind.partition('/')[0]}/*", "*/*"}) for kind in media_types)


def mismatch(request: Request, call: Call, version: object) -> Failure | None:
    """Why a request of 2026-07-28 is refused whose headers do not repeat what its body says (section Server Validation)."""
    for header, wanted in _repeated(call, version):
        if _decoded(request.headers.getlist(header)) != wanted:
            return own_error(_MISMATCH, "Header mismatch", {"header": header})
    return None


def _repeated(call: Call, version: object) -> Iterator[tuple[str, object]]:
    yield "MCP-Protocol-Version", version
    yield "Mcp-Method", call.method
    member = _NAMED.get(call.method)
    if member is not None:
        named = _members(call.params).get(member)
        if isinstance(named, str):  # else the method says what is wrong
            yield "Mcp-Name", named


class _Named(Struct):
    name: Any = None  # JSON
    uri: Any = None


def _members(params: Raw | None) -> Mapping[str, Any]:
    try:
        found = decoder_for(_Named)(params or b"{}")
    except DECODE_ERRORS:
        return {}
    return {"name": found.name, "uri": found.uri}


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
    except (binascii.Error, ValueError):
        return None
