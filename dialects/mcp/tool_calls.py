"""The outcome of an operation as the result of a tool: content for the model, structure for programs, errors it can read."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, Protocol, final

import msgspec

from ...daemon.connection.handshake import ServerInfo
from ...daemon.declarations import CONTENT, TOOL_ERROR, ToolContent, foreign_tool
from ...daemon.rpc.dialect import Events
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
from .generated.legacy import CallToolResult
from .generated.shared import ContentBlock
from .results import json_content, modern_members, reduced
from .revision import ProtocolRevision, is_own

if TYPE_CHECKING:
    from .tools import Tool

CRASHED: Final = "The tool failed with an internal error."
MAX_EVENT_BYTES: Final = 256 * 1024
"""How much of a subscription's events its result holds: the last ones, since a model reads all of it."""

_encode: Final = msgspec.json.Encoder().encode
_NOT_THE_TOOLS: Final = (
    AuthenticationRequired, Cancelled, InsufficientPermissions, InvalidRequest, MethodNotFound, OperationTypeMismatch,
    ParseFailure, Unavailable,
)  # fmt: skip
"""Failures that are told as errors of the protocol: no model can do anything about them."""


class _Error(msgspec.Struct, frozen=True):
    code: str
    retryable: bool
    details: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class ProgressMessages(Protocol):
    """Who writes the progress of calls."""

    def begin_progress(self, token: str | int | None) -> None: ...
    def end_progress(self, token: str | int | None) -> None: ...
    def encode_progress(self, token: str | int, value: object) -> bytes | None: ...


@final
class ToolRendering:
    """How one call of a tool is answered."""

    def __init__(self, tool: Tool, protocol: ProtocolRevision, server: ServerInfo, progress: ProgressMessages) -> None:
        self.tool = tool
        self.protocol = protocol
        self._server = server
        self._progress = progress
        progress.begin_progress(protocol.token)

    def result(self, result: bytes) -> bytes:
        self._progress.end_progress(self.protocol.token)
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
                return self._own(result)
            case "whole":
                return self._whole(result)

    def failure(self, failure: Failure) -> bytes | None:
        self._progress.end_progress(self.protocol.token)
        if isinstance(failure, _NOT_THE_TOOLS) or is_own(failure):
            return None
        if isinstance(failure, InvalidParams) and not self.protocol.has("2025-11-25"):
            return None
        said = self._said_by_foreign_tool(failure)
        if said is not None:
            return self._whole(said, error=True)
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
            parts.append(_encode(modern_members({}, self._server))[1:-1])
        return b"{%b}" % b",".join(parts)

    def _content(self, content: bytes) -> bytes:
        if self.protocol.has("2025-11-25"):
            return content
        try:
            blocks = decoder_for(list[ContentBlock])(content)
        except DECODE_ERRORS:  # another server's, of a kind that nobody knows here
            return _text_of(content)
        return _encode(reduced(blocks, self.protocol.revision))

    def _said_by_foreign_tool(self, failure: Failure) -> msgspec.Raw | None:
        if isinstance(failure, DomainFailure) and failure.code == TOOL_ERROR:
            return failure.details if foreign_tool(self.tool.spec.options) is not None else None
        return None

    def _whole(self, said: bytes | msgspec.Raw, *, error: bool = False) -> bytes:
        """What a tool of another server says, as it said it."""
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

    def _own(self, result: bytes) -> bytes:
        own = decoder_for(CallToolResult)(result)
        if self.protocol.modern:
            return _encode(modern_members(msgspec.to_builtins(own), self._server))
        return _encode(reduced(own, self.protocol.revision))


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


@final
class ToolEvents(Events):
    """A subscription as a tool: events are progress where the client wants any, and the result is a list of the last ones."""

    def __init__(self, call_id: bytes, rendering: ToolRendering, progress: ProgressMessages) -> None:
        super().__init__(call_id)
        self._token = rendering.protocol.token
        self._progress = progress
        self._events: deque[bytes] = deque()
        self._size = 0
        self._omitted = 0

    def encode(self, number: int, value: bytes) -> bytes | None:
        self._events.append(value)
        self._size += len(value)
        while self._size > MAX_EVENT_BYTES:
            self._size -= len(self._events.popleft())
            self._omitted += 1
        if self._token is None:
            return None
        return self._progress.encode_progress(self._token, {"progress": number, "message": value.decode()})

    def result(self, completed: bytes) -> bytes:
        omitted = b',"omitted":%d' % self._omitted if self._omitted else b""
        return b'{"result":[%b]%b}' % (b",".join(self._events), omitted)
