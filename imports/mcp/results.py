"""Reads the results of tools, resources and prompts. Waits for nobody."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from ...client.errors import InvalidReply, RemoteError
from ...daemon.declarations import CONTENT, OF_SERVERS
from ...errors.decoders import DECODE_ERRORS, decoder_for
from ...errors.exceptions import FailureError
from ...errors.failures import Overloaded, TimedOut, Unavailable
from ..model import UpstreamError
from .model import McpOperation
from .reading import SERVER_ERROR, TOOL_ERROR

MAX_ERROR_TEXT: Final = 1000
"""Characters of what a server says about an error of its own."""

_encode: Final = msgspec.json.Encoder().encode
_NO_CONTENT: Final = Raw(b"[]")


class _ToolResult(Struct, rename="camel"):
    content: Raw = _NO_CONTENT
    structured_content: Raw = Raw(b"")
    is_error: bool | None = None
    result_type: str = "complete"


def read_result(operation: McpOperation, text: Raw) -> Raw:
    """The result of an operation. Raises `UpstreamError` for an error of a tool, and `InvalidReply`."""
    if operation.method == "tools/call":
        return _read_tool_result(operation, text)
    try:
        members = decoder_for(dict[str, Any])(text)
    except DECODE_ERRORS:
        raise InvalidReply("the result is no object") from None
    if members.pop("resultType", "complete") != "complete":
        raise InvalidReply(ASKS)
    for beside in ("_meta", "ttlMs", "cacheScope"):
        members.pop(beside, None)
    return Raw(_encode(members))


def _read_tool_result(operation: McpOperation, text: Raw) -> Raw:
    try:
        found = decoder_for(_ToolResult)(text)
    except DECODE_ERRORS:
        raise InvalidReply("the result is not as MCP has it") from None
    if found.result_type != "complete":
        raise InvalidReply(ASKS)
    structured = bytes(found.structured_content)
    if found.is_error:
        raise _declared_error(operation, structured) or UpstreamError(
            TOOL_ERROR.code, _whole(found.content, structured)
        )
    if not operation.structured:
        return _whole(found.content, structured)
    if not structured:
        raise InvalidReply("the tool declares structured content, but gave none")
    return _with_content(structured, found.content)


def _with_content(structured: bytes, content: Raw) -> Raw:
    """Join structured content with content that says more than a text of the same. Only an object has room for that."""
    try:
        blocks: list[Any] = decoder_for(list[Any])(content)
        members = decoder_for(dict[str, Raw])(structured)
        if _repeats(blocks, decoder_for(dict[str, Any])(structured)):
            return Raw(structured)
        meta = decoder_for(dict[str, Raw])(members.get("_meta", b"{}"))
    except DECODE_ERRORS:
        return Raw(structured)
    return Raw(_encode(members | {"_meta": meta | {CONTENT: content}}))


def _repeats(blocks: list[Any], structured: dict[str, Any]) -> bool:
    """Whether blocks are texts alone that say what is structured: all of it, or what is wrapped as `result`, or its items."""
    if not all(isinstance(each, dict) and each.keys() == {"type", "text"} for each in blocks):
        return False
    texts = [each["text"] for each in blocks]
    alone = structured["result"] if structured.keys() == {"result"} else structured
    if isinstance(alone, list) and len(alone) == len(texts) and all(map(_says, texts, alone)):
        return True
    return not texts or (len(texts) == 1 and (_says(texts[0], structured) or _says(texts[0], alone)))


def _says(text: object, value: object) -> bool:
    if text == value or not isinstance(text, str):
        return text == value
    try:
        return bool(msgspec.json.decode(text) == value)
    except DECODE_ERRORS:
        return False


class _ErrorFacts(Struct, forbid_unknown_fields=True):
    """How a tool of another discreet says what error it is."""

    code: str
    retryable: bool
    details: Raw = Raw(b"")


def _declared_error(operation: McpOperation, structured: bytes) -> UpstreamError | FailureError | None:
    """The error that a failed tool declares, or a limit or a deadline of the daemon that it runs in; None for any other."""
    try:
        facts = decoder_for(_ErrorFacts)(structured)
    except DECODE_ERRORS:
        return None
    details = Raw(bytes(facts.details)) if bytes(facts.details) not in (b"", b"null") else None
    if facts.code in {error.code for error in operation.errors} - OF_SERVERS:
        return UpstreamError(facts.code, details)
    return _transient(facts.code, details) if facts.retryable else None


class _RetryAfter(Struct):
    retry_after_ms: int | None = msgspec.field(name="retryAfterMs", default=None)


def _transient(code: object, details: Raw | None) -> FailureError | None:
    """The failure of a call that may succeed later."""
    try:
        after = None if details is None else decoder_for(_RetryAfter)(details).retry_after_ms
    except DECODE_ERRORS:
        after = None
    match code:
        case "OVERLOADED":
            return FailureError(Overloaded(after))
        case "UNAVAILABLE":
            return FailureError(Unavailable(after, upstream=True))
        case "TIMEOUT":
            return FailureError(TimedOut())
        case _:
            return None


ASKS: Final = "the server asks the user or the model before it answers, which an import can't"


def _whole(content: Raw, structured: bytes) -> Raw:
    beside = b',"structuredContent":' + structured if structured else b""
    return Raw(b'{"content":%b%b}' % (bytes(content), beside))


def server_error(exc: RemoteError) -> UpstreamError | FailureError:
    """What the caller learns of an error of the server."""
    if isinstance(exc.data, dict) and exc.data.get("retryable") is True:
        transient = _transient(exc.data.get("code"), Raw(_encode(exc.data.get("details"))))
        if transient is not None:
            return transient
    details = {"code": exc.number, "message": exc.error.message[:MAX_ERROR_TEXT]}
    return UpstreamError(SERVER_ERROR.code, Raw(_encode(details)))
