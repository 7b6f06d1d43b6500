"""Cross-Origin Resource Sharing (WHATWG Fetch, section 3.2): which origins' pages may read the answers. Off by default, but for
the public agent card.

Answers never allow credentials of the browser's own, such as cookies: a page sends its token in a header.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, final

from starlette.datastructures import MutableHeaders
from starlette.responses import Response

from .a2a.cards import CARD_PATHS
from .requests import HEADERS, GatewayRequest, route_path

if TYPE_CHECKING:
    from starlette.types import Message, Send

    from ..a2a.card.model import ApiKey
    from .origins import Origins

_METHODS: Final = "GET, HEAD, POST, PUT, DELETE"
_OF_MCP: Final = ("mcp-method", "mcp-name", "mcp-protocol-version", "mcp-session-id")
_EXPOSED: Final = "etag, mcp-session-id, retry-after, www-authenticate"
"""Answer headers that pages may read beside the few that they always may."""
_MAX_AGE_SECONDS: Final = 600
"""How long a browser may go by a preflight's answer."""


@final
class Cors:
    """The headers of answers, and the answers to preflights. `api_keys` are those of the agent's card."""

    def __init__(self, origins: Origins, api_keys: Iterable[ApiKey]) -> None:
        self._origins = origins
        keys = [key.name.lower() for key in api_keys if key.location == "header"]
        self._accepted = ", ".join(sorted({*HEADERS, *_OF_MCP, "content-type", *keys}))

    @staticmethod
    def is_preflight(request: GatewayRequest) -> bool:
        """Whether a browser asks what a page may send."""
        headers = request.headers
        return request.method == "OPTIONS" and "origin" in headers and "access-control-request-method" in headers

    @staticmethod
    def is_for_all(request: GatewayRequest) -> bool:
        """Whether pages of any origin may read what this asks for: the public agent card, as any program may."""
        return request.method in ("GET", "HEAD", "OPTIONS") and f"/{route_path(request.scope)}" in CARD_PATHS

    def preflight(self) -> Response:
        """What a page of an allowed origin may send."""
        headers = {
            "access-control-allow-methods": _METHODS,
            "access-control-allow-headers": self._accepted,
            "access-control-max-age": str(_MAX_AGE_SECONDS),
        }
        return Response(status_code=204, headers=headers)

    def adding_headers(self, request: GatewayRequest, send: Send) -> Send:
        """A `send` that lets pages of an allowed origin read the answer."""
        for_all = self.is_for_all(request)
        if not (self._origins.any_allowed or for_all):
            return send
        origin = request.headers.get("origin")

        async def add_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if for_all:
                    headers["access-control-allow-origin"] = "*"
                    headers["access-control-expose-headers"] = _EXPOSED
                    return await send(message)
                headers.add_vary_header("origin")
                if origin is not None and self._origins.allows_cross_origin(origin):
                    headers["access-control-allow-origin"] = origin
                    headers["access-control-expose-headers"] = _EXPOSED
            await send(message)

        return add_headers
