"""`GET /openapi.json`: the OpenAPI document of what the caller may call, at the address under which the caller asks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

import msgspec
from starlette.responses import Response

from ...daemon.operations.request import Request
from ...daemon.rpc.envelope import NULL_ID
from ...errors.failures import Internal, MethodNotFound
from ..call_runner import CallRunner, response_of
from ..hosted_agent import agent_of
from ..openapi.document import about, openapi_document
from ..requests import GatewayRequest, note_route
from ..responses.compression import compressed, gzipped_before
from ..responses.etags import etag_of, with_etag
from .writer import OperationWriter, not_allowed

if TYPE_CHECKING:
    from starlette.types import Send

    from ...daemon.host import Host
    from ...daemon.operations.spec import OperationSpec

PATH: Final = "openapi.json"

MAX_DOCUMENTS: Final = 16
"""Documents that are kept, the last ones that were asked for. Callers who may call the same have the same."""

_WRITER: Final = OperationWriter()
_SERVERS: Final = b'"servers":[{"url":"/"}]'
"""What stands in each document in place of the address."""


class _Written(msgspec.Struct):
    """A document as it is sent to those who ask at this address: compressed once, where somebody takes it so."""

    url: str
    body: bytes
    etag: str
    gzipped: bytes | None = None


class _Made(msgspec.Struct):
    """A document: what stands before its servers, what behind, and as it was sent last."""

    before: bytes
    after: bytes
    written: _Written


@final
class DocumentEndpoint:
    """The documents of one host."""

    def __init__(self, host: Host, calls: CallRunner) -> None:
        self._host = host
        self._calls = calls
        self._documents: dict[tuple[str, ...], _Made] = {}
        self._change_count = host.change_count

    async def respond(self, request: GatewayRequest, path: str, send: Send) -> Response | None:
        if path != PATH:
            return response_of(_WRITER.failure(MethodNotFound()))
        note_route(request, f"/{PATH}")
        if request.method not in ("GET", "HEAD"):
            return response_of(not_allowed("GET, HEAD"))
        access = await self._calls.access_of(request, Request(PATH, NULL_ID, None, self._calls.service_params(request)))
        if isinstance(access, Internal):
            return response_of(_WRITER.failure(access))
        visible = self._host.catalogue.visible_to(access.identify({}))
        specs = [spec for spec in visible if access.refusal(spec.access, {}) is None]
        if not specs and (unknown := access.unknown_caller) is not None:
            return response_of(_WRITER.failure(unknown))
        written = self._written(specs, self._calls.url(request).rstrip("/"))  # paths begin with a slash
        response = with_etag(request, Response(written.body, media_type="application/json"), written.etag)
        if response.status_code != 200:
            return response
        if written.gzipped is not None:
            return gzipped_before(request, response, written.gzipped)
        response = await compressed(request, response)
        if "content-encoding" in response.headers:
            written.gzipped = bytes(response.body)
        return response

    def _written(self, specs: list[OperationSpec], url: str) -> _Written:
        if self._change_count != self._host.change_count:
            self._documents.clear()
            self._change_count = self._host.change_count
        key = tuple(spec.name for spec in specs)
        made = self._documents.pop(key, None) or self._made(specs)
        self._documents[key] = made  # behind all others
        if len(self._documents) > MAX_DOCUMENTS:
            del self._documents[next(iter(self._documents))]
        if made.written.url != url:
            made.written = _at(made.before, made.after, url)
        return made.written

    def _made(self, specs: list[OperationSpec]) -> _Made:
        host = self._host
        told = about(host.catalogue.services, agent_of(host).card, host.access.provider, version=host.version, url="/")
        before, _, after = msgspec.json.encode(openapi_document(specs, told)).partition(_SERVERS)
        return _Made(before, after, _at(before, after, "/"))


def _at(before: bytes, after: bytes, url: str) -> _Written:
    body = b'%b"servers":%b%b' % (before, msgspec.json.encode([{"url": url}]), after)
    return _Written(url, body, etag_of(body))
