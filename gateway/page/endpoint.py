"""Serves the page for people to everybody who may reach the gateway, and the last requests to those who sent them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

import msgspec
from starlette.responses import Response

from ...daemon.operations.request import Request
from ...daemon.rpc.envelope import NULL_ID
from ...errors.failures import Internal, MethodNotFound
from ..answers import JSON
from ..call_runner import response_of
from ..operations.writer import OperationWriter, not_allowed
from ..requests import GatewayRequest, note_route
from ..responses.compression import compressed
from ..responses.etags import with_etag
from .document import document
from .recent_requests import RecentRequest, RecentRequests

if TYPE_CHECKING:
    from starlette.types import Send

    from ..call_runner import CallRunner

REQUESTS: Final = "page/requests"
"""The path of what the page alone asks for."""

_WRITER: Final = OperationWriter()


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

    async def respond(self, request: GatewayRequest, path: str, send: Send) -> Response | None:
        if path not in ("", REQUESTS):
            return response_of(_WRITER.failure(MethodNotFound()))
        note_route(request, f"/{path}")
        if request.method not in ("GET", "HEAD"):
            return response_of(not_allowed("GET, HEAD" if path else "GET, HEAD, POST"))
        response = await self._requests(request) if path else self._page(request)
        return await compressed(request, response)

    def _page(self, request: GatewayRequest) -> Response:
        return with_etag(request, Response(self._body, headers=self._headers, media_type="text/html; charset=utf-8"))

    async def _requests(self, request: GatewayRequest) -> Response:
        """The last requests of this caller; those of all where nobody tells callers apart."""
        access = await self._calls.access_of(
            request, Request(REQUESTS, NULL_ID, None, self._calls.service_params(request))
        )
        if isinstance(access, Internal):
            return response_of(_WRITER.failure(access))
        if (unknown := access.unknown_caller) is not None:
            return response_of(_WRITER.failure(unknown))
        body = msgspec.json.encode(_Requests(self._recent.of(access)))
        return Response(body, headers={"cache-control": "no-store"}, media_type=JSON)
