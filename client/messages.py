"""JSON-RPC 2.0 as a client writes and reads it. Never reads a stream, never waits; results stay the bytes that came."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

import msgspec
from msgspec import UNSET, Raw, UnsetType

from .validation import encode_params

STREAM_EVENT: Final = "stream/event"

NOBODY: Final = 0
"""The id of a reply to a request that was never sent; this side's ids start at 1."""

_ID_DIGITS: Final = 18
"""Longer numbers are no ids of this side, and huge ones are not worth converting."""

UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding raises for text that is no JSON, is no UTF-8, is nested too deeply, or does not fit its type."""


class Reply(msgspec.Struct):
    """A response. `id` is None when the server could not tell which request it answers (JSON-RPC 2.0 section 5)."""

    id: int | None
    result: Raw | None
    error: Raw | None


class ServerRequest(msgspec.Struct):
    """A request from the server; `id` is its JSON text, to be echoed as it came."""

    id: bytes
    method: str
    params: Raw | None


class ServerNotification(msgspec.Struct):
    method: str
    params: Raw | None


class Malformed(msgspec.Struct):
    """JSON, but no message. `id` names the request that it seems to answer."""

    id: int | None


Message: TypeAlias = Reply | ServerRequest | ServerNotification | Malformed


class StreamEvent(msgspec.Struct):
    """The params of `stream/event`."""

    id: int
    seq: int
    value: Raw


class Completion(msgspec.Struct):
    """The result that ends a subscription: how many events there were."""

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


def decode(body: bytes) -> Message:
    """Read one body. Raises one of `UNREADABLE` for what is no JSON."""
    try:
        members = _decode_members(body)
    except msgspec.ValidationError:
        return Malformed(None)
    raw_id = None if isinstance(members.id, UnsetType) else bytes(members.id)
    if isinstance(members.method, str):
        params = _present(members.params)
        if raw_id is None:
            return ServerNotification(members.method, params)
        return ServerRequest(raw_id, members.method, params)
    result = None if isinstance(members.result, UnsetType) else members.result
    error = _present(members.error)
    own_id = _own_id(raw_id or b"null")
    if (result is None) == (error is None) or (own_id is None and error is None):
        return Malformed(own_id)
    return Reply(own_id, result, error)


def _present(member: Raw | UnsetType) -> Raw | None:
    return None if isinstance(member, UnsetType) or bytes(member) == b"null" else member


def _own_id(raw: bytes) -> int | None:
    if raw == b"null":
        return None
    return int(raw) if raw.isdigit() and len(raw) <= _ID_DIGITS else NOBODY


def encode_request(
    call_id: int | None, method: str, params: object = None, service_params: Mapping[str, str] | None = None
) -> bytes:
    """A request, or a notification when `call_id` is None. Raises `TypeError` and `ValueError` for params that are no JSON."""
    members = [b'{"jsonrpc":"2.0"']
    if call_id is not None:
        members.append(b'"id":%d' % call_id)
    members.append(b'"method":' + _encode(method))
    if params is not None:
        members.append(b'"params":' + encode_params(params))
    if service_params:
        members.append(b'"serviceParams":' + _encode(service_params))
    return b",".join(members) + b"}"


def encode_result(raw_id: bytes, result: object) -> bytes:
    """The answer to a server's request. Raises `TypeError` for a result that is no JSON."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (raw_id, _encode(result))


def encode_error(raw_id: bytes, error: bytes) -> bytes:
    """An error as the answer to a server's request; `error` is JSON text."""
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (raw_id, error)
