"""JSON-RPC 2.0 messages as a client writes and reads them. Never reads a stream, never waits; results stay JSON texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

import msgspec
from msgspec import UNSET, Raw, UnsetType

from .validation import encode_params

STREAM_EVENT: Final = "stream/event"

STREAM_WINDOW: Final = "stream-window"
"""The service parameter that opens a window: how many events may be sent beyond those that were taken."""

STREAM_TAKEN: Final = "$/streamTaken"
"""The notification that says which were. Servers without windows ignore it, as they ignore every unknown one that begins so."""

MAX_MESSAGE_BYTES: Final = 256 * 1024 * 1024
"""The user chose the server, so its messages may be larger than those that a daemon accepts from any client."""

UNKNOWN_ID: Final = 0
"""The id of a reply to a request that was never sent. This side's ids start at 1."""

MAX_ID_BYTES: Final = 1024
"""The longest id of a server's request: the reply repeats it. A UUID has 36 characters."""

_ID_DIGITS: Final = 18
"""A longer number is no id of this side, and a huge one is not worth converting."""

DECODE_ERRORS: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Raised for text that is no JSON, is no UTF-8, is nested too deeply, or does not fit its type."""


class Response(msgspec.Struct):
    """`id` is None when the server could not tell which request it answers (JSON-RPC 2.0 section 5)."""

    id: int | None
    result: Raw | None
    error: Raw | None


class ServerRequest(msgspec.Struct):
    """A request from the server. `id` is its JSON text; the reply repeats it unchanged. `size` is in bytes, of the message."""

    id: bytes
    method: str
    params: Raw | None
    size: int


class ServerNotification(msgspec.Struct):
    """A notification from the server."""

    method: str
    params: Raw | None


class InvalidMessage(msgspec.Struct):
    """JSON that is no message. `id` is the id of the request that it seems to answer."""

    id: int | None


ServerMessage: TypeAlias = Response | ServerRequest | ServerNotification | InvalidMessage


class StreamEvent(msgspec.Struct):
    """The params of `stream/event`."""

    id: int
    seq: int
    value: Raw


class EventId(msgspec.Struct):
    """The part of a malformed `stream/event` that may still be readable."""

    id: int


class StreamEnd(msgspec.Struct):
    """The result that ends a subscription. `events` is how many events the server sent."""

    completed: bool
    events: int


class _Members(msgspec.Struct):
    id: Raw | UnsetType = UNSET
    method: str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


_decode_members = msgspec.json.Decoder(_Members).decode
_encode = msgspec.json.Encoder().encode


def decode_message(body: bytes) -> ServerMessage:
    """Read one body. Raises one of `DECODE_ERRORS` for a body that is no JSON."""
    try:
        members = _decode_members(body)
    except msgspec.ValidationError:
        return InvalidMessage(None)
    raw_id = None if isinstance(members.id, UnsetType) else bytes(members.id)
    if isinstance(members.method, str):
        params = _none_if_null(members.params)
        if raw_id is None:
            return ServerNotification(members.method, params)
        if len(raw_id) > MAX_ID_BYTES:
            return InvalidMessage(None)
        return ServerRequest(raw_id, members.method, params, len(body))
    result = None if isinstance(members.result, UnsetType) else members.result
    error = _none_if_null(members.error)
    answered = own_id(raw_id or b"null")
    if (result is None) == (error is None) or (answered is None and error is None):
        return InvalidMessage(answered)
    return Response(answered, result, error)


def _none_if_null(member: Raw | UnsetType) -> Raw | None:
    return None if isinstance(member, UnsetType) or bytes(member) == b"null" else member


def own_id(raw: bytes) -> int | None:
    """Return an id as one of this side's; `UNKNOWN_ID` for one that can't be, None for null."""
    if raw == b"null":
        return None
    return int(raw) if raw.isdigit() and len(raw) <= _ID_DIGITS else UNKNOWN_ID


class OutgoingRequest(msgspec.Struct, frozen=True):
    """A request of this side, before a connection writes it in its own way. `params` is a JSON text."""

    id: int
    method: str
    params: bytes | None
    service_params: Mapping[str, str] | None

    @property
    def size(self) -> int:
        """Bytes of the params, which is about what the request takes."""
        return len(self.params or b"")

    def encode(self, *, service_params: bool = True) -> bytes:
        """The request as one JSON text, with the service params in it or without them."""
        return _encode_envelope(self.id, self.method, self.params, self.service_params if service_params else None)


def outgoing_request(
    request_id: int, method: str, params: object = None, service_params: Mapping[str, str] | None = None
) -> OutgoingRequest:
    """A request. Raises `TypeError` and `ValueError` for params that JSON can't hold."""
    return OutgoingRequest(request_id, method, None if params is None else encode_params(params), service_params)


def encode_notification(method: str, params: object = None, service_params: Mapping[str, str] | None = None) -> bytes:
    """A notification. Raises as `outgoing_request` does."""
    return _encode_envelope(None, method, None if params is None else encode_params(params), service_params)


def _encode_envelope(
    request_id: int | None, method: str, params: bytes | None, service_params: Mapping[str, str] | None
) -> bytes:
    members = [b'{"jsonrpc":"2.0"']
    if request_id is not None:
        members.append(b'"id":%d' % request_id)
    members.append(b'"method":' + _encode(method))
    if params is not None:
        members.append(b'"params":' + params)
    if service_params:
        members.append(b'"serviceParams":' + _encode(service_params))
    return b",".join(members) + b"}"


def encode_result(raw_id: bytes, result: object) -> bytes:
    """The answer to a server's request. Raises `TypeError` for a result that JSON can't hold."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (raw_id, _encode(result))
