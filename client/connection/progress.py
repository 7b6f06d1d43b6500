"""Progress of a call: the token by which it asks to be told, and what the server tells. Sends nothing, calls nothing."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeAlias

import msgspec
from msgspec import UNSET, Raw, UnsetType

from ...errors.decoders import decoder_for
from ..messages import DECODE_ERRORS
from ..validation import encode_params

ProgressHandler: TypeAlias = Callable[[Any], object]  # JSON values in

_encode: Final = msgspec.json.Encoder().encode

_TOKEN: Final = "discreet-{}"
"""A program does not choose such a token for itself."""

_read_token: Final = re.compile(_TOKEN.format("(0|[1-9][0-9]{0,18})")).fullmatch


class ProgressDialect(Protocol):
    """The part of a `Dialect` that this module needs; its docstring explains the attributes."""

    @property
    def progress_member(self) -> str: ...

    @property
    def work_done_token(self) -> bool: ...


class Progress(msgspec.Struct, frozen=True):
    """What a notification of progress says: whose it is, and how far the work is."""

    request_id: int
    value: Any  # JSON


def with_token(params: object, request_id: int, dialect: ProgressDialect) -> dict[str, Raw]:
    """The params with the token of this request. Raises `TypeError` for params by position, which have no place for it."""
    text = encode_params({} if params is None else params)
    try:
        members = decoder_for(dict[str, Raw])(text)
        meta = decoder_for(dict[str, Raw])(members.get("_meta", b"{}"))
    except msgspec.ValidationError:
        raise TypeError(
            "on_progress needs params by name, with `_meta` an object: its token has no other place"
        ) from None
    token = Raw(_encode(_TOKEN.format(request_id)))
    if dialect.work_done_token:
        return {**members, "workDoneToken": token}
    return {**members, "_meta": Raw(_encode({**meta, "progressToken": token}))}


def read_progress(params: Raw | None, dialect: ProgressDialect) -> Progress | None:
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
