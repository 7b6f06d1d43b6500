"""Writes the outcome of an operation as the result of a tool: content for the model, structure for programs, readable errors.

What a client of an older revision does not know is left out.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct

from ...daemon.declarations import CONTENT, TOOL_ERROR, Foreign, ToolContent, foreign_tool
from ...daemon.operations.registry import ServerInfo
from ...errors.codes import INTERNAL_ERROR, INVALID_PARAMS
from ...errors.decoders import DECODE_ERRORS, decoder_for
from ...errors.failures import (
    AuthenticationRequired,
    Cancelled,
    DomainFailure,
    Failure,
    InsufficientPermissions,
    InvalidParams,
    InvalidRequest,
    MethodNotFound,
    OperationTypeMismatch,
    ParseFailure,
    Unavailable,
)
from ...errors.wire import ErrorObject, error_object
from .generated import structs
from .generated.structs import CallToolResult, ContentBlock
from .generated.tables import MEMBERS, STRUCTS
from .revision import NEWEST_LEGACY, Meta, ProtocolRevision, is_own, modern_members
from .state import McpState
from .tools import Tool

CRASHED: Final = "The tool failed with an internal error."
_encode: Final = msgspec.json.Encoder().encode
_NOT_THE_TOOLS: Final = (
    AuthenticationRequired, Cancelled, InsufficientPermissions, InvalidRequest, MethodNotFound, OperationTypeMismatch,
    ParseFailure, Unavailable,
)  # fmt: skip
"""Failures that are told as errors of the protocol: no model can do anything about them."""


def write(state: McpState, result: Struct, meta: Meta | None, *, ttl_ms: int | None = None) -> Raw:
    """A result as JSON text, in the revision of its request."""
    return encode_result(result, state.protocol(meta), state.server, ttl_ms=ttl_ms)


def encode_result(result: Struct, protocol: ProtocolRevision, server: ServerInfo, *, ttl_ms: int | None = None) -> Raw:
    """A result as JSON text. A modern one tells its type and the server, and for how long it may be kept, if given."""
    if not protocol.modern:
        return Raw(_encode(result if protocol.revision == NEWEST_LEGACY else reduced(result, protocol.revision)))
    members = msgspec.to_builtins(result)
    return Raw(_encode(modern_members(members, server, ttl_ms=ttl_ms)))


def reduced(value: Any, revision: str) -> Any:  # Any: structs and JSON
    """Return a value as a revision knows it. Content of an unknown kind becomes text."""
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


class _Error(msgspec.Struct, frozen=True):
    code: str
    retryable: bool
    details: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class ToolResult(Struct, frozen=True, eq=False):
    """How one call of a tool is answered."""

    tool: Tool
    protocol: ProtocolRevision
    server: ServerInfo

    def write(self, result: bytes) -> bytes:
        match self.tool.shape:
            case "object" | "events":
                return self._structured(result)
            case "wrapped":
                return self._write(_text_of(result), b'{"result":%b}' % result)
            case "any":
                return self._write(_text_of(result), result if result.startswith(b"{") else None)
            case "nothing":
                return self._write(b"[]", None)
            case "content":
                return self._write(self._content(b"[%b]" % result), None)
            case "contents":
                return self._write(self._content(result), None)
            case "result":
                own = decoder_for(CallToolResult)(result)
                if self.protocol.modern:
                    return _encode(modern_members(msgspec.to_builtins(own), self.server))
                return _encode(reduced(own, self.protocol.revision))
            case "whole":
                return self._whole(result)

    def tell(self, failure: Failure) -> bytes | None:
        if isinstance(failure, _NOT_THE_TOOLS) or is_own(failure):
            return None
        if isinstance(failure, InvalidParams) and not self.protocol.has("2025-11-25"):
            return None
        is_foreign = foreign_tool(self.tool.spec.options) is not None
        if (
            is_foreign
            and isinstance(failure, DomainFailure)
            and failure.code == TOOL_ERROR
            and failure.details is not None
        ):
            return self._whole(failure.details, error=True)
        return self.write_error(error_object(failure))

    def write_error(self, error: ErrorObject) -> bytes:
        """The result of a tool that failed with this error."""
        if error.code == INTERNAL_ERROR:
            facts = _encode(_Error("INTERNAL", retryable=False, details=error.data))
            told = CRASHED if isinstance(error.data, msgspec.UnsetType) else f"{CRASHED}\n{facts.decode()}"
            return self._write(json_content(_encode(told)), facts, error=True)
        if error.code == INVALID_PARAMS:
            facts = _encode(_Error("INVALID_INPUT", retryable=False, details=error.data))
        else:
            facts = b"{}" if isinstance(error.data, msgspec.UnsetType) else bytes(error.data)
        return self._write(json_content(_encode(f"{error.message}\n{facts.decode()}")), facts, error=True)

    def _write(self, content: bytes, structured: bytes | None, *, error: bool = False) -> bytes:
        parts = [b'"content":' + content]
        if structured is not None and self.protocol.has("2025-06-18"):
            parts.append(b'"structuredContent":' + structured)
        if error:
            parts.append(b'"isError":true')
        if self.protocol.modern:
            parts.append(_encode(modern_members({}, self.server))[1:-1])
        return b"{%b}" % b",".join(parts)

    def _content(self, content: bytes) -> bytes:
        if isinstance(self.tool.spec.options, Foreign):
            from .imported import content_here  # late: few tools are those of other servers

            content = content_here(content, self.tool.spec.options.server)
        if self.protocol.has("2025-11-25"):
            return content
        try:
            blocks = decoder_for(list[ContentBlock])(content)
        except DECODE_ERRORS:  # another server's, of a kind that is unknown here
            return _text_of(content)
        return _encode(reduced(blocks, self.protocol.revision))

    def _whole(self, said: bytes | msgspec.Raw, *, error: bool = False) -> bytes:
        whole = decoder_for(ToolContent)(said)
        structured = (
            None if isinstance(whole.structured_content, msgspec.UnsetType) else bytes(whole.structured_content)
        )
        return self._write(self._content(bytes(whole.content)), structured, error=error)

    def _structured(self, result: bytes) -> bytes:
        """An object. Content that a tool of another server gave beside it goes out as it came."""
        content: msgspec.Raw | None = None
        if foreign_tool(self.tool.spec.options) is not None:
            result, content = _without_content(result)
        return self._write(_text_of(result) if content is None else self._content(bytes(content)), result)


def _without_content(result: bytes) -> tuple[bytes, msgspec.Raw | None]:
    """A structured result and the content that an import has put into its `_meta`, if it has."""
    if CONTENT.encode() not in result:
        return result, None
    try:
        members = decoder_for(dict[str, msgspec.Raw])(result)
        meta = decoder_for(dict[str, msgspec.Raw])(members.pop("_meta"))
        content = meta.pop(CONTENT)
        decoder_for(list[msgspec.Raw])(content)
    except (*DECODE_ERRORS, KeyError):
        return result, None
    return _encode(members | ({"_meta": meta} if meta else {})), content


def _text_of(result: bytes) -> bytes:
    """Content of one text: a string as it is, anything else as its JSON."""
    return json_content(result if result.startswith(b'"') else _encode(result.decode()))
