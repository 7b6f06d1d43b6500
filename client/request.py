"""The content of a call or a subscription, and what it carries beside: the token by which it asks for progress, and the span
that it is made for. Reads progress as well. Sends nothing, calls nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import UNSET, Raw, UnsetType
from msgspec.structs import replace

from ..errors.decoders import decoder_for
from .dialects import Dialect, TracePlace
from .errors import DeclaredErrors
from .messages import DECODE_ERRORS, STREAM_WINDOW, OutgoingRequest, outgoing_request
from .pending import PendingCall, PendingStream, ProgressHandler
from .validation import encode_params

ServiceParams: TypeAlias = Mapping[str, str] | None

_PARENT: Final = "traceparent"

_encode: Final = msgspec.json.Encoder().encode

_TOKEN: Final = "discreet-{}"
"""A program does not choose such a token for itself."""

_read_token: Final = re.compile(_TOKEN.format("(0|[1-9][0-9]{0,18})")).fullmatch


SUBSCRIBE: Final = "services/subscribe"

INPUT: Final = "input"
"""The param of `services/subscribe` that holds the operation's own params. Its errors name them with this prefix."""


class Request(msgspec.Struct, frozen=True):
    """The content of a call or a subscription, the same for all attempts."""

    method: str
    params: object
    service_params: ServiceParams
    errors: DeclaredErrors = ()
    on_progress: ProgressHandler | None = None
    window: int | None = None

    def traced(self, headers: Mapping[str, str], place: TracePlace | None) -> Request:
        """The same, which names the span that it is made for."""
        params, service_params = with_trace(self.params, self.service_params, headers, place)
        return replace(self, params=params, service_params=service_params)

    def call(self, request_id: int, dialect: Dialect) -> tuple[PendingCall, OutgoingRequest]:
        """The request of a call. Raises `TypeError` and `ValueError` for params that JSON can't hold."""
        params = self.params if self.on_progress is None else with_token(self.params, request_id, dialect)
        message = outgoing_request(request_id, self.method, params, self.service_params)
        return PendingCall(request_id, message.size, self.errors, self.on_progress, method=self.method), message

    def stream(self, request_id: int, *, checked: bool) -> tuple[PendingStream, OutgoingRequest]:
        """The request of a subscription: one that is refused for an operation of another kind, or to the method itself."""
        method, params = self.method, self.params
        if checked:
            method, params = SUBSCRIBE, {"operationId": self.method, INPUT: self.params}
        window = {} if self.window is None else {STREAM_WINDOW: str(self.window)}
        message = outgoing_request(request_id, method, params, {**window, **(self.service_params or {})} or None)
        return PendingStream(message.id, message.size, self.errors, method=self.method, window=self.window), message


class Progress(msgspec.Struct, frozen=True):
    """What a notification of progress says: whose it is, and how far the work is."""

    request_id: int
    value: Any  # JSON


def with_token(params: object, request_id: int, dialect: Dialect) -> dict[str, Raw]:
    """The params with the token of this request. Raises `TypeError` for params by position, which have no place for it."""
    try:
        members, meta = _members(params)
    except msgspec.ValidationError:
        raise TypeError(
            "on_progress needs params by name, with `_meta` an object: its token has no other place"
        ) from None
    token = Raw(_encode(_TOKEN.format(request_id)))
    if dialect.work_done_token:
        return {**members, "workDoneToken": token}
    return {**members, "_meta": Raw(_encode({**meta, "progressToken": token}))}


def read_progress(params: Raw | None, dialect: Dialect) -> Progress | None:
    """What a notification tells: its member `value`, or without one its other members. None for a token of somebody else."""
    try:
        members = decoder_for(dict[str, Any])(params or b"")
    except DECODE_ERRORS:
        return None
    token = members.pop(dialect.progress_member, None)
    found = _read_token(token) if isinstance(token, str) else None
    if found is None:
        return None
    value: Any | UnsetType = members.get("value", UNSET)
    return Progress(int(found[1]), members if value is UNSET else value)


def with_trace(
    params: Any, service_params: ServiceParams, headers: Mapping[str, str], place: TracePlace | None
) -> tuple[Any, ServiceParams]:  # Any: what a program sends
    """The params and the service params of a request that names its span, unless its program has named one there itself.

    Params by position have no place for it.
    """
    match place:
        case "service_params" if headers:
            named = any(name.lower() == _PARENT for name in service_params or {})
            return params, service_params if named else {**headers, **(service_params or {})}
        case "meta" if headers:
            try:
                members, meta = _members(params)
            except msgspec.ValidationError:
                return params, service_params
            named = _PARENT in meta
            return params if named else {**members, "_meta": Raw(_encode({**headers, **meta}))}, service_params
        case _:
            return params, service_params


def _members(params: object) -> tuple[dict[str, Raw], dict[str, Raw]]:
    """The members of params by name, and those of `_meta` in them. Raises `msgspec.ValidationError` for other params."""
    members = decoder_for(dict[str, Raw])(encode_params({} if params is None else params))
    return members, decoder_for(dict[str, Raw])(members.get("_meta", b"{}"))
