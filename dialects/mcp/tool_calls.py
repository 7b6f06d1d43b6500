"""Answers `tools/list` and `tools/call`: turns the outcome of an operation into content for the model, structure for programs,
and errors that the model can read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct

from ...daemon.declarations import CONTENT, TOOL_ERROR, ToolContent, foreign_tool
from ...daemon.operations.context import Context
from ...daemon.operations.registry import ServerInfo
from ...daemon.operations.service import Service
from ...errors.decoders import DECODE_ERRORS, decoder_for
from ...errors.failures import (
    AuthenticationRequired,
    Cancelled,
    DomainFailure,
    Failure,
    InsufficientPermissions,
    Internal,
    InvalidParams,
    InvalidRequest,
    MethodNotFound,
    OperationTypeMismatch,
    ParseFailure,
    Unavailable,
)
from ...errors.wire import error_object
from .asking import AskingParams, forward
from .generated import structs
from .generated.structs import CallToolResult, ContentBlock, ListToolsResult
from .generated.structs import Tool as ListedTool
from .generated.tables import MEMBERS, STRUCTS
from .revision import NEWEST_LEGACY, TTL_MS, Meta, Params, ProtocolRevision, is_own, modern_members, unknown
from .state import McpState
from .tools import Tool, page, tool_name

PAGE_BYTES: Final = 4 * 1024 * 1024
"""How much one page of tools holds: those of imported operations may be large."""
CRASHED: Final = "The tool failed with an internal error."
_encode: Final = msgspec.json.Encoder().encode
_NOT_THE_TOOLS: Final = (
    AuthenticationRequired, Cancelled, InsufficientPermissions, InvalidRequest, MethodNotFound, OperationTypeMismatch,
    ParseFailure, Unavailable,
)  # fmt: skip
"""Failures that are told as errors of the protocol: no model can do anything about them."""


# Results for the revision that a request is answered in: what older clients do not know is left out.


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


# Tools.


class ListParams(Params, frozen=True, kw_only=True):
    """The params of every list."""

    cursor: str | None = None


class CallParams(AskingParams, frozen=True, kw_only=True):
    name: str
    arguments: Raw = Raw(b"{}")


def add_tools(service: Service, state: McpState) -> None:
    """Add the methods to a service."""

    @service.query("tools/list", inline=True)
    def list_tools(ctx: Context, params: ListParams, /) -> Raw:
        """List the tools that the caller may call."""
        names = (tool_name(spec.name) for spec in state.visible(ctx))
        tools = [tool for name in names if (tool := state.tools.get(name)) is not None]
        shown, following = _tool_page(tools, params.cursor)
        result = ListToolsResult(tools=shown, next_cursor=following)
        return write(state, result, params.meta, ttl_ms=TTL_MS)

    @service.query("tools/call", inline=True)
    def call_tool(params: CallParams, /) -> Any:  # Any: a forward
        """Call a tool."""
        tool = state.tools.get(params.name)
        if tool is None:
            raise unknown("tool", params.name, param="name")
        protocol = state.protocol(params.meta)
        result = ToolResult(tool, protocol, state.server)
        given = tool.arguments(params.arguments)
        return forward(state, tool.spec.name, given, "arguments", params, protocol, result.write, result.tell)


def _tool_page(tools: Sequence[Tool], cursor: str | None) -> tuple[list[ListedTool], str | None]:
    """Return a page of tools as `page` does, of at least one and of as many as `PAGE_BYTES` have room for."""
    shown, _ = page(tools, cursor)
    found: list[ListedTool] = []
    size = 0
    for tool in shown:
        described = tool.described
        size += len(msgspec.json.encode(described))
        if found and size > PAGE_BYTES:
            break
        found.append(described)
    end = len(found) + (0 if cursor is None else int(cursor))
    return found, str(end) if end < len(tools) else None


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
        error = error_object(failure)
        if isinstance(failure, Internal):
            facts = _encode(_Error("INTERNAL", retryable=False))
            return self._write(json_content(_encode(CRASHED)), facts, error=True)
        if isinstance(failure, InvalidParams):
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
        if self.protocol.has("2025-11-25"):
            return content
        try:
            blocks = decoder_for(list[ContentBlock])(content)
        except DECODE_ERRORS:  # another server's, of an unknown kind
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
