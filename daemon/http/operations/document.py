"""`GET /openapi.json`: the OpenAPI document of what the caller may call, at the address under which the caller asks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

import msgspec
from starlette.responses import Response

from ....errors.failures import Internal, MethodNotFound
from ...openapi.about import about
from ...openapi.document import openapi_document
from ...rpc.envelope import NULL_ID, Call
from ...services.identity_cache import IdentityCache
from ..calls import Calls, response_of
from ..requests import note_route
from .compression import compressed
from .etags import with_etag
from .writer import OperationWriter, not_allowed

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import Send

    from ...host import Host
    from ...operations.access import Identity

PATH: Final = "openapi.json"

_WRITER: Final = OperationWriter()
_SERVERS: Final = b'"servers":[{"url":"/"}]'
"""What stands in each document in place of the address."""


@final
class DocumentEndpoint:
    """The documents of one host. Each is made once for an identity."""

    def __init__(self, host: Host, calls: Calls) -> None:
        self._host = host
        self._calls = calls
        self._documents: IdentityCache[tuple[bytes, bytes]] = IdentityCache()

    async def respond(self, request: Request, path: str, send: Send) -> Response | None:
        if path != PATH:
            return response_of(_WRITER.failure(MethodNotFound()))
        note_route(request, f"/{PATH}")
        if request.method not in ("GET", "HEAD"):
            return response_of(not_allowed("GET, HEAD"))
        access = await self._calls.access_of(Call(PATH, NULL_ID, None, self._calls.service_params(request)))
        if isinstance(access, Internal):
            return response_of(_WRITER.failure(access))
        identity = access.identify({})
        before, after = self._documents.get(identity, lambda: self._made(identity))
        servers = msgspec.json.encode([{"url": self._calls.url(request).rstrip("/")}])  # paths begin with one
        response = Response(b'%b"servers":%b%b' % (before, servers, after), media_type="application/json")
        return await compressed(request, with_etag(request, response))

    def _made(self, identity: Identity | None) -> tuple[bytes, bytes]:
        """The document for this caller: what stands before its servers, and what behind."""
        host = self._host
        told = about(host.catalogue.services, host.agent.declared, host.access.provider, version=host.version, url="/")
        text = msgspec.json.encode(openapi_document(host.catalogue.visible_to(identity), told))
        before, _, after = text.partition(_SERVERS)
        return before, after
