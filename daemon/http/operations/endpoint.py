"""Operations by their names: `POST /operations/{name}` with the params as a JSON object, queries also by GET."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Final, final
from urllib.parse import unquote

from msgspec import Raw

from ....errors.exceptions import FailureError
from ....errors.failures import Failure, Internal, InvalidParams, MethodNotFound
from ...dispatch.router import Router
from ...openapi.query_params import QueryParam, query_params
from ...operations.context import last_event_id
from ...operations.registry import Registry
from ...rpc.envelope import NULL_ID, Call
from ...rpc.text import json_failure
from ...schemas.documents import input_schema
from ..calls import Calls, response_of
from ..requests import note_route
from .compression import SMALLEST, compressed
from .etags import with_etag
from .query import read_query
from .whole_numbers import with_whole_numbers
from .writer import OperationWriter, not_allowed

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import Send

    from ...host import Host
    from ...operations.spec import OperationSpec

PREFIX: Final = "operations/"
_UNKNOWN: Final = OperationWriter()


@final
class OperationsEndpoint:
    """Reaches the external operations of the hosted services, and nothing else that the host has."""

    def __init__(self, host: Host, calls: Calls) -> None:
        self._calls = calls
        self._services = Registry(host.catalogue.services)
        self._router = Router(self._services, self._services, calls.access, named=False)
        self._served = _served(self._services)
        host.operation_watchers.append(self._refresh)
        self._in_query = frozenset(key.name for key in host.agent.api_keys if key.location == "query")

    def _refresh(self) -> None:
        self._services.refresh()
        self._served = _served(self._services)

    async def respond(self, request: Request, path: str, send: Send) -> Response | None:
        name = path.removeprefix(PREFIX)
        served = self._served.get(unquote(name) if "%" in name else name)
        if served is None:
            return response_of(_UNKNOWN.failure(MethodNotFound()))
        note_route(request, f"/{PREFIX}{served.spec.name}")
        refusal = await self._refusal(request, served)
        if refusal is not None:
            return self._calls.refused(served.writer, refusal, close=request.method == "POST")
        match request.method:
            case "POST":
                response = await self._post(request, served, send)
            case "GET" | "HEAD" if served.params is not None:
                response = await self._get(request, served, served.params, send)
            case _:
                return response_of(not_allowed(served.allowed))
        if response is None or len(response.body) < SMALLEST:  # most are small
            return response
        return await compressed(request, response)

    async def _refusal(self, request: Request, served: _Served) -> Failure | None:
        """Why this caller may not call. It is told before anything of the params is: neither do they cost those anything who may
        not call, nor do errors tell these what they are."""
        if served.spec.access.open:
            return None
        metadata = self._calls.service_params(request)
        access = await self._calls.access_of(Call(served.spec.name, NULL_ID, None, metadata))
        if isinstance(access, Internal):
            return access
        refusal = access.refusal(served.spec.access, metadata)
        if refusal is not None and self._calls.recent is not None:
            self._calls.recent.add(access, None, refusal, 0.0)
        return refusal

    async def _post(self, request: Request, served: _Served, send: Send) -> Response | None:
        body = await self._calls.body(request, served.writer)
        if not isinstance(body, bytes):
            return body
        failure = json_failure(body) or served.wrong_form(body)
        if failure is not None:
            return self._calls.refused(served.writer, failure)
        return await self._run(request, served, body, send)

    async def _get(
        self, request: Request, served: _Served, params: Mapping[str, QueryParam], send: Send
    ) -> Response | None:
        try:
            given = read_query(request.scope["query_string"], params, self._in_query)
        except FailureError as exc:
            return self._calls.refused(served.writer, exc.failure)
        response = await self._run(request, served, given, send)
        if response is None or response.status_code != 200:
            return response
        if served.spec.etag:
            return with_etag(request, response)
        response.headers["cache-control"] = "no-store"
        return response

    async def _run(self, request: Request, served: _Served, params: bytes, send: Send) -> Response | None:
        params = with_whole_numbers(params, served.spec.input)
        metadata = self._calls.service_params(request)
        if served.spec.numbered:
            try:
                last_event_id(metadata)
            except FailureError as exc:
                return self._calls.refused(served.writer, exc.failure)
        call = Call(served.spec.name, NULL_ID, Raw(params), metadata, size=len(params))
        return await self._calls.run(request, send, call, served.writer, self._router)


@final
class _Served:
    """One operation. `allowed` are the verbs that it takes, `params` those of a query that may stand in a URL."""

    def __init__(self, spec: OperationSpec) -> None:
        self.spec: Final = spec
        self.writer: Final = OperationWriter(has_result=spec.has_result)

    @cached_property
    def params(self) -> Mapping[str, QueryParam] | None:
        found = query_params(input_schema(self.spec.input)) if self.spec.kind == "query" else None
        return None if found is None else {param.name: param for param in found}

    @property
    def allowed(self) -> str:
        return "POST" if self.params is None else "GET, HEAD, POST"

    def wrong_form(self, body: bytes) -> Failure | None:
        """What is wrong with a body whose params have names, and that holds no object."""
        first = body.lstrip()[:1]
        if first == b"{" or self.spec.input.whole:
            return None
        return InvalidParams("$", "object", _KINDS.get(first, "number"))


def _served(services: Registry) -> dict[str, _Served]:
    return {spec.name: _Served(spec) for spec in services if spec.visibility == "external"}


_KINDS: Final = {b"[": "array", b'"': "string", b"t": "boolean", b"f": "boolean", b"n": "null"}
"""The JSON types of texts by their first byte; of all others it is a number."""
