"""Short answers in plain text, and what is refused before anything else is looked at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from starlette.responses import Response

if TYPE_CHECKING:
    from ..requests import GatewayRequest


def plain_text(text: str, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """An answer that holds for now only."""
    return Response(f"{text}\n", status, {"cache-control": "no-store", **(headers or {})}, "text/plain")


def refusal(request: GatewayRequest, path: str, expected: str) -> Response | None:
    """What a request gets for another path than this, or with another method than GET and HEAD."""
    if path != expected:
        return plain_text("not found", 404)
    if request.method not in ("GET", "HEAD"):
        return plain_text("method not allowed", 405, {"allow": "GET, HEAD"})
    return None
