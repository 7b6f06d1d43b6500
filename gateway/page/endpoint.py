"""Serves the page for people to all who may reach the gateway, and to each caller its last requests.

The page is one document, the same for all, without a fact of the daemon. Its script asks for the facts that it shows.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, final

import msgspec

from ...daemon.operations.access import Access
from ...errors.codes import RESERVED_CODES
from ...errors.failures import MethodNotFound
from ...pages.inline import DOM, PALETTE, policy, script_of, styles_of, text_of
from ..answers import Answer, compressed, with_etag
from ..operations import OperationWriter, not_allowed
from ..requests import GatewayRequest, note_route
from .recent_requests import RecentRequest, RecentRequests

if TYPE_CHECKING:
    from ..asgi import Send
    from ..calls import CallRunner

REQUESTS: Final = "page/requests"
"""The path of what the page alone asks for."""

_HERE: Final = __package__ or ""
_SCRIPTS: Final = ("requests.js", "form.js", "operations.js", "tasks.js", "agent.js", "page.js")
_WRITER: Final = OperationWriter()


class Document(msgspec.Struct, frozen=True):
    """The page, and the policy (CSP) that it must be sent with."""

    body: bytes
    policy: str


def document(*, has_operations: bool) -> Document:
    """Connects to its own origin only, and stands in no frame. It asks for operations where there are any."""
    css = styles_of(text_of(PALETTE, (_HERE, "page.css")))
    told = {"PROTOCOL_CODES": sorted(RESERVED_CODES), "HAS_OPERATIONS": has_operations}
    constants = "".join(f"const {name} = {json.dumps(value)};\n" for name, value in told.items())
    script = script_of(constants, text_of(DOM, *((_HERE, name) for name in _SCRIPTS)))
    html = text_of((_HERE, "page.html")).replace("CSS", css).replace("SCRIPT", script)
    return Document(html.encode("ascii"), policy(css, script, "connect-src 'self'", "frame-ancestors 'none'"))


class _Requests(msgspec.Struct, frozen=True):
    requests: list[RecentRequest]


@final
class PageEndpoint:
    """The root, but for A2A's JSON-RPC, and `page/requests`. It has the calls keep their last requests."""

    def __init__(self, calls: CallRunner, *, has_operations: bool) -> None:
        made = document(has_operations=has_operations)
        self._calls = calls
        self._recent = calls.recent = RecentRequests()
        self._body = made.body
        self._headers: Final = {
            "content-security-policy": made.policy,
            "cross-origin-opener-policy": "same-origin",
            "cross-origin-resource-policy": "same-origin",
            "permissions-policy": "camera=(), geolocation=(), microphone=()",
            "referrer-policy": "no-referrer",
        }

    async def respond(self, request: GatewayRequest, path: str, send: Send) -> Answer | None:
        if path not in ("", REQUESTS):
            return _WRITER.failure(MethodNotFound())
        note_route(request, f"/{path}")
        if request.method not in ("GET", "HEAD"):
            return not_allowed("GET, HEAD" if path else "GET, HEAD, POST")
        if path:
            return await compressed(request, await self._requests(request))
        page = Answer(200, self._body, "text/html; charset=utf-8", {**self._headers})
        return await compressed(request, with_etag(request, page))

    async def _requests(self, request: GatewayRequest) -> Answer:
        """Return the last requests of this caller; without an identity provider those of all."""
        access = await self._calls.known_access(request, REQUESTS)
        if not isinstance(access, Access):
            return _WRITER.failure(access)
        body = msgspec.json.encode(_Requests(self._recent.of(access)))
        return Answer(200, body, headers={"cache-control": "no-store"})
