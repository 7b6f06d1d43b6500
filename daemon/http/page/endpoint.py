"""Serves the page for people to everybody who may reach the gateway, and the last requests to those who sent them."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final, final

import msgspec
from starlette.responses import Response

from ....errors.failures import AuthenticationRequired, Internal
from ...rpc.envelope import NULL_ID, Call
from ..answers import JSON, headers_of
from .document import document
from .recent_requests import RecentRequest, RecentRequests

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import Send

    from ..calls import Calls

SEGMENT: Final = "page"
"""The first segment of the paths of what the page alone asks for."""

_REQUESTS: Final = f"{SEGMENT}/requests"


class _Requests(msgspec.Struct, frozen=True):
    requests: list[RecentRequest]


@final
class PageEndpoint:
    """`GET` of the root, and of `page/requests`."""

    def __init__(self, calls: Calls, recent: RecentRequests) -> None:
        made = document()
        self._calls = calls
        self._recent = recent
        self._body = made.body
        self._etag = f'"{hashlib.sha256(made.body).hexdigest()[:32]}"'
        self._headers: Final = {
            "etag": self._etag,
            "cache-control": "no-cache",
            "content-security-policy": made.policy,
            "cross-origin-opener-policy": "same-origin",
            "cross-origin-resource-policy": "same-origin",
            "permissions-policy": "camera=(), geolocation=(), microphone=()",
            "referrer-policy": "no-referrer",
            "x-content-type-options": "nosniff",
        }

    async def respond(self, request: Request, path: str, send: Send) -> Response | None:
        if path not in ("", _REQUESTS):
            return Response(status_code=404)
        if request.method not in ("GET", "HEAD"):
            return Response(status_code=405, headers={"allow": "GET, HEAD"})
        return await self._requests(request) if path else self._page(request)

    def _page(self, request: Request) -> Response:
        """The page, or 304 where the browser has it (RFC 9110, section 13.1.2)."""
        known = request.headers.get("if-none-match", "")
        if self._etag in (each.strip().removeprefix("W/") for each in known.split(",")):
            return Response(status_code=304, headers=self._headers)
        return Response(self._body, headers=self._headers, media_type="text/html; charset=utf-8")

    async def _requests(self, request: Request) -> Response:
        """The last requests of this caller; those of all where nobody tells callers apart."""
        call = Call(_REQUESTS, NULL_ID, None, self._calls.service_params(request))
        access = await self._calls.access_of(call)
        if isinstance(access, Internal):
            return Response(status_code=500)
        provider, caller = access.provider, access.caller
        if provider is not None and caller is None:
            return Response(
                status_code=401,
                headers=headers_of(AuthenticationRequired(tuple(provider.schemes), provider.realm)),
            )
        subject = None if provider is None or caller is None else caller.subject
        body = msgspec.json.encode(_Requests(self._recent.of(subject)))
        return Response(body, headers={"cache-control": "no-store"}, media_type=JSON)
