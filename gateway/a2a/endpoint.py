"""What A2A has on every path: JSON-RPC at the root, the agent card, HTTP+JSON below."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, final

from ...a2a.methods import VERSIONS
from ...daemon.dispatch.router import Router
from ...daemon.operations.registry import Registry
from ...daemon.rpc.envelope import NULL_ID, Call
from ...errors.exceptions import FailureError
from ...errors.failures import A2AVersion, MethodNotFound
from ..calls import Calls, response_of
from ..hosted_agent import agent_of
from ..requests import GatewayRequest, note_route
from .cards import CARD_PATHS, WELL_KNOWN, Cards
from .jsonrpc import JsonRpcWriter, read_call
from .rest.answers import RestWriter
from .rest.params import read_params
from .rest.routes import Found, NotAllowed, find_route, path_of, version_of_path
from .version import DEFAULT_VERSION, asked_version, version_to_answer

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import Send

    from ...daemon.host import Host


@final
class A2AEndpoint:
    """Reaches the methods of A2A, and nothing else that the host has."""

    def __init__(self, host: Host, calls: Calls) -> None:
        self._calls = calls
        self._settings = host.settings
        methods, rest_methods = (
            Registry((), agent_of(host).lazy_operations),
            Registry((), agent_of(host).rest_operations),
        )
        self._router = Router(methods, host.registry, calls.access, named=False)
        self._rest: Final[Mapping[A2AVersion, tuple[Registry, Router]]] = {
            "1.0": (methods, self._router),
            "0.3": (rest_methods, Router(rest_methods, host.registry, calls.access, named=False)),
        }
        self._cards = Cards(agent_of(host).public_card)

    async def respond(self, request: GatewayRequest, path: str, send: Send) -> Response | None:
        path = path.lstrip("/")
        if not path:
            note_route(request, "/")
            if request.method == "POST":
                return await self._jsonrpc(request, send)
            hint = f"JSON-RPC is sent by POST; the agent card is at {WELL_KNOWN}; a page for people is served with --http-page"
            return _not_allowed(_writer(request), ("POST",), hint)
        if f"/{path}" in CARD_PATHS:
            note_route(request, f"/{path}")
            if request.method in ("GET", "HEAD"):
                return self._cards.answer(request, self._calls.url(request))
            return _not_allowed(_writer(request), ("GET", "HEAD"))
        return await self._http_json(request, path, send)

    async def _jsonrpc(self, request: GatewayRequest, send: Send) -> Response | None:
        version = version_to_answer(request)
        body = await self._calls.body(request, JsonRpcWriter(NULL_ID, version))
        if not isinstance(body, bytes):
            return body
        call = read_call(body, self._metadata(request))
        if not isinstance(call, Call):
            call_id, failure = call
            return self._calls.refused(request, JsonRpcWriter(call_id, version), failure, call_id)
        writer = JsonRpcWriter(call.id or NULL_ID, VERSIONS.get(call.method, version))
        return await self._calls.run(request, send, call, writer, self._router, jsonrpc=True)

    async def _http_json(self, request: GatewayRequest, path: str, send: Send) -> Response | None:
        version = version_of_path(path, version_to_answer(request))
        writer = RestWriter(version, request.headers.get("accept"))
        found = find_route(request.method, path, version_to_answer(request))
        match found:
            case None:
                from .rest.meant import meant_by  # late: only errors need it

                meant = meant_by(path, version, request.scope.get("root_path", ""), self._settings)
                return response_of(writer.failure(MethodNotFound(meant)))
            case NotAllowed(allowed):
                return _not_allowed(writer, allowed)
            case Found(route, params):
                note_route(request, path_of(route, version, tenant="tenant" in params))
        methods, router = self._rest[version]
        spec = methods.find(route.method)
        assert spec is not None, "every row of the table is a method"
        call = Call(route.method, NULL_ID, None, self._metadata(request))
        refusal = await self._calls.refusal(request, call, spec)
        if refusal is not None:
            return self._calls.refused(request, writer, refusal, close=route.verb == "POST")
        takes_body = route.verb == "POST"
        body = await self._calls.body(request, writer, needed=route.needs_body) if takes_body else b""
        if not isinstance(body, bytes):
            return body
        try:
            call.params = read_params(found, body, request.query_params, spec.input)
        except FailureError as exc:
            return self._calls.refused(request, writer, exc.failure)
        call.size = len(body)
        return await self._calls.run(request, send, call, writer, router)

    def _metadata(self, request: GatewayRequest) -> dict[str, str]:
        """The service parameters of a request (A2A 1.0, section 3.6.1). The version stands in its headers or in its query."""
        return {**self._calls.service_params(request), "a2a-version": asked_version(request) or DEFAULT_VERSION}


def _writer(request: GatewayRequest) -> RestWriter:
    return RestWriter(version_to_answer(request), request.headers.get("accept"))


def _not_allowed(writer: RestWriter, allowed: tuple[str, ...], suggestion: str = "") -> Response:
    failure = MethodNotFound(suggestion or f"this path takes {' and '.join(allowed)}")
    return response_of(writer.not_allowed(failure, allowed))
