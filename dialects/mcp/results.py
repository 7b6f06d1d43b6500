"""Writes results for the revision that a request is answered in: what older clients don't know is left out."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct

from ...daemon.operations.registry import ServerInfo
from .generated import structs
from .generated.tables import MEMBERS, STRUCTS
from .revision import NEWEST_LEGACY, ProtocolRevision, modern_members

_encode: Final = msgspec.json.Encoder().encode


def encode_result(result: Struct, protocol: ProtocolRevision, server: ServerInfo, *, ttl_ms: int | None = None) -> Raw:
    """A result as JSON text. A modern one tells its type and the server, and for how long it may be kept, if given."""
    if not protocol.modern:
        return Raw(_encode(result if protocol.revision == NEWEST_LEGACY else reduced(result, protocol.revision)))
    members = msgspec.to_builtins(result)
    return Raw(_encode(modern_members(members, server, ttl_ms=ttl_ms)))


def reduced(value: Any, revision: str) -> Any:  # Any: structs and JSON
    """What a revision knows of a value. Content of a kind that it does not know becomes text."""
    match value:
        case list():
            return [reduced(item, revision) for item in value]
        case dict():
            return {name: reduced(item, revision) for name, item in value.items()}
        case Struct():
            return _members(_known(value, revision), revision)
        case _:
            return value


def _known(value: Struct, revision: str) -> Struct:
    if STRUCTS.get(type(value).__name__, "") <= revision:
        return value
    match value:
        case structs.AudioContent():
            return structs.TextContent(text=f"[{value.mime_type}]")
        case structs.ResourceLink():
            return structs.TextContent(text=f"{value.name}: {value.uri}")
        case _:
            return value


def _members(value: Struct, revision: str) -> dict[str, Any]:
    cls = type(value)
    since = MEMBERS.get(cls.__name__, {})
    members: dict[str, Any] = {}
    if cls.__struct_config__.tag_field is not None:
        members[cls.__struct_config__.tag_field] = cls.__struct_config__.tag
    for field, name in zip(cls.__struct_fields__, cls.__struct_encode_fields__, strict=True):
        member = getattr(value, field)
        if member is not None and member is not UNSET and since.get(name, "") <= revision:
            newer = isinstance(member, Struct) and STRUCTS.get(type(member).__name__, "") > revision
            if not newer or isinstance(member, structs.AudioContent | structs.ResourceLink):
                members[name] = reduced(member, revision)
    return members


def json_content(text: bytes) -> bytes:
    """Content of one text; `text` is a JSON string."""
    return b'[{"type":"text","text":%b}]' % text
