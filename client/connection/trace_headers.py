"""Where a request says for which span it is made. Records nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Raw

from ...errors.decoders import decoder_for
from ..validation import encode_params

TracePlace: TypeAlias = Literal["service_params", "meta"]
"""`serviceParams` beside the params (headers by HTTP), or `_meta` in them."""

ServiceParams: TypeAlias = Mapping[str, str] | None

_PARENT: Final = "traceparent"

_encode: Final = msgspec.json.Encoder().encode


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
            return _with_meta(params, headers), service_params
        case _:
            return params, service_params


def _with_meta(params: Any, headers: Mapping[str, str]) -> Any:
    try:
        members = decoder_for(dict[str, Raw])(encode_params({} if params is None else params))
        meta = decoder_for(dict[str, Raw])(members.get("_meta", b"{}"))
    except msgspec.ValidationError:
        return params
    return params if _PARENT in meta else {**members, "_meta": Raw(_encode({**headers, **meta}))}
