"""The dialects whose requests name the span of their caller in `_meta`: MCP and ACP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from ..daemon.rpc.dialect import Dialect
from ..errors.decoders import DECODE_ERRORS, decoder_for

if TYPE_CHECKING:
    from ..daemon.operations.request import Request


class _Traced(msgspec.Struct):
    class Meta(msgspec.Struct):
        traceparent: Any = None  # JSON: a `_meta` of another shape is no fault
        tracestate: Any = None

    meta: Meta | None = msgspec.field(name="_meta", default=None)


class TracedInMeta(Dialect):
    """Reads and writes `traceparent` and `tracestate` in `_meta`."""

    def trace_meta(self, request: Request) -> Mapping[str, object] | None:
        if request.params is None:
            return None
        try:
            meta = decoder_for(_Traced)(request.params).meta
        except DECODE_ERRORS:
            return None
        return None if meta is None else msgspec.structs.asdict(meta)

    def with_trace(self, params: object, headers: Mapping[str, str]) -> tuple[object, Mapping[str, str]]:
        if not headers:
            return params, {}
        members = decoder_for(dict[str, msgspec.Raw])(msgspec.json.encode(params))
        own = decoder_for(dict[str, msgspec.Raw] | None)(members.get("_meta", b"null"))
        return {**members, "_meta": {**headers, **(own or {})}}, {}
