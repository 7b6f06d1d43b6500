"""Refuses requests that two readers could understand in two ways, and heads that are too large: what the parsers let pass.

Whoever stands in front, a proxy or a cache, must see the same requests as the gateway (RFC 9112, section 11.2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from starlette.responses import Response

from ...daemon.logs import log

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

_ONCE: Final = (b"host", b"content-length", b"transfer-encoding", b"authorization", b"content-type")
"""Headers of which a second one could be read by somebody else."""
_HEAD_TOO_LARGE: Final = 431
_LINE_BYTES: Final = 4
"""What a header line has beside its name and its value: the colon, a blank, and the line's end."""


@final
class StrictHttp:
    """An ASGI app around another. Refused requests are the last ones of their connection. `head_bytes` limits the head."""

    def __init__(self, app: ASGIApp, head_bytes: int) -> None:
        self._app = app
        self._head_bytes = head_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        status = self._refusal(scope) if scope["type"] == "http" else 0
        if not status:
            return await self._app(scope, receive, send)
        if status == _HEAD_TOO_LARGE:
            log.info("http.head_too_large")
        else:
            log.info("http.malformed", status=status)
        await Response(status_code=status, headers={"connection": "close"})(scope, receive, send)

    def _refusal(self, scope: Scope) -> int:
        """The status; 0 where nothing is wrong."""
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        if scope["http_version"] not in ("1.0", "1.1"):
            return 505
        size = len(scope.get("raw_path") or b"") + len(scope["query_string"])
        if size + sum(len(name) + len(value) + _LINE_BYTES for name, value in headers) > self._head_bytes:
            return _HEAD_TOO_LARGE
        if not (scope.get("raw_path") or b"/").startswith((b"/", b"*")):
            return 400
        names = [name for name, _ in headers]
        if any(names.count(name) > 1 for name in _ONCE):
            return 400
        given = dict(headers)
        if b"host" not in given and scope["http_version"] == "1.1":
            return 400
        return _framing_refusal(given, scope["http_version"])


def _framing_refusal(headers: dict[bytes, bytes], version: str) -> int:
    """How the body's end is told (RFC 9112, section 6)."""
    coding = headers.get(b"transfer-encoding")
    if coding is None:
        return 0
    if coding.strip().lower() != b"chunked":
        return 501
    return 400 if b"content-length" in headers or version == "1.0" else 0
