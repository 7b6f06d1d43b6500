"""The ASGI app: A2A over HTTP, for one host. Every request is a client of its own, which knows nothing of the others."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final, final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ...errors.exceptions import FailureError
from ...errors.failures import A2AVersion, Failure, Internal, MethodNotFound, Unavailable
from ...errors.printable import cut
from ...lazy import anyio
from ..dispatch.router import Router
from ..logs import RepeatedWarning
from ..memory import SMALL
from ..operations.access import Access, Identity
from ..operations.registry import Registry
from ..rpc.a2a_methods import version_of
from ..rpc.dialect import PLAIN
from ..rpc.envelope import NULL_ID, Call
from ..rpc.request_log import note_failure
from .answers import Answer, AnswerWriter, JsonRpcWriter
from .cards import WELL_KNOWN, WELL_KNOWN_OLD, Cards
from .context_host import HttpContextHost
from .cors import Cors
from .exchange import Exchange
from .jsonrpc import read_call
from .requests import BodyTimeout, ClientGone, read_body, route_path, service_params, version_to_answer
from .rest.answers import RestWriter
from .rest.params import read_params
from .rest.routes import Found, NotAllowed, find_route, version_of_path
from .senders import Callers, Senders
from .sse import send_events

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from ..agents.card.model import ApiKey
    from ..host import Host
    from .origins import Origins

ANONYMOUS: Final = "anonymous"
"""Who HTTP callers are where no identity provider tells them apart. Their tasks are not those of the parent process."""


UNWATCHED_SECONDS: Final = 0.05
"""How long a call may run before the gateway watches whether its client goes: that costs as much as most calls."""


MAX_SHOWN: Final = 255
"""Characters of a header that the log shows: as many as a name may have."""

_HOST_HINT: Final = "answer to this name, too: http-host; behind a proxy, name the public address: http-url"
_ORIGIN_HINT: Final = "let the web pages of this origin call: http-origin"


class GatewaySettings(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes in bytes, times in seconds. `url` is the public one; without it, what clients ask for. With `local_only`, callers
    from other machines are refused."""

    url: str = ""
    max_body: int
    body_timeout: float
    keep_alive: float = 15.0
    max_in_flight: int = 1024
    local_only: bool = False


@final
class Gateway:
    """An ASGI app. `on_progress()` is called when a request has ended."""

    def __init__(self, host: Host, settings: GatewaySettings, origins: Origins) -> None:
        self._host = host
        self._settings = settings
        self._origins = origins
        self._cors = Cors(origins, host.agent.api_keys)
        provider = host.access.provider
        anonymous = Identity(ANONYMOUS, host.access.parent.scopes)
        self._access: Final = Access(anonymous, provider)
        methods, rest_methods = Registry((), host.agent.lazy_operations), Registry((), host.agent.rest_operations)
        self._router = Router(methods, host.registry, self._access, named=False)
        self._rest: Final[Mapping[A2AVersion, tuple[Registry, Router]]] = {
            "1.0": (methods, self._router),
            "0.3": (rest_methods, Router(rest_methods, host.registry, self._access, named=False)),
        }
        self._callers = Callers(self._access)
        self._senders = Senders(settings.max_in_flight)
        self._cards = Cards(host.agent.public_card)
        self._api_keys: tuple[ApiKey, ...] = host.agent.api_keys
        self._stranger_refused = RepeatedWarning("http.stranger_refused")
        self._host_refused = RepeatedWarning("http.request_refused")
        self._origin_refused = RepeatedWarning("http.request_refused")
        self._closed = False
        self._bodies: set[anyio.CancelScope] = set()
        self._open = 0
        self.on_progress: Callable[[], None] = lambda: None
        self.context_host: Final = HttpContextHost(host, self._access)
        """For what runs for no request."""

    def close(self) -> None:
        """From now on whatever comes is answered with UNAVAILABLE. What was accepted goes on."""
        self._closed = True
        for scope in self._bodies:
            scope.cancel()

    @property
    def settled(self) -> bool:
        """True when every request is answered."""
        return not self._open

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await _no_lifespan(receive, send)
            elif scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1000})
            return
        request = Request(scope, receive)
        send = self._cors.adding_headers(request, send)
        response = self._refusal(request) or await self._respond(request, scope, receive, send)
        if response is not None:
            await self._send(response, send)

    async def _send(self, response: Response, send: Send) -> None:
        """Send a whole response. It counts in the memory budget until the client has taken most of it."""
        size = len(response.body)
        self._host.memory.add("replies", size)
        try:
            await send({"type": "http.response.start", "status": response.status_code, "headers": response.raw_headers})
            await send({"type": "http.response.body", "body": bytes(response.body), "more_body": size > SMALL})
            if size > SMALL:  # this waits until there is room for more
                await send({"type": "http.response.body", "body": b""})
        finally:
            self._host.memory.add("replies", -size)

    def _refusal(self, request: Request) -> Response | None:
        """What strangers' web pages get. Whether they may read it is for the CORS rules to say."""
        if self._settings.local_only and not _is_local(request):
            self._stranger_refused(hint="only this machine may call; add a token, or allow everybody: http-open")
            return Response("only callers on this machine are answered", 403, media_type="text/plain")
        host, origin = request.headers.get("host"), request.headers.get("origin")
        if not self._origins.admits_host(host):
            self._host_refused(host=cut(host or "", MAX_SHOWN), hint=_HOST_HINT)
            return Response("unknown host", 421, media_type="text/plain")
        if self._cors.is_preflight(request):
            if origin is not None and self._origins.allows_cross_origin(origin):
                return self._cors.preflight()
        elif self._origins.admits_origin(origin, host):
            return None
        self._origin_refused(origin=cut(origin or "", MAX_SHOWN), hint=_ORIGIN_HINT)
        return Response("origin not allowed", 403, media_type="text/plain")

    async def _respond(self, request: Request, scope: Scope, receive: Receive, send: Send) -> Response | None:
        path = route_path(scope)
        if f"/{path}" in (WELL_KNOWN, WELL_KNOWN_OLD) and request.method in ("GET", "HEAD"):
            return self._cards.answer(request, self._url(request))
        if path:
            return await self._http_json(request, send, path)
        if request.method == "POST":
            return await self._jsonrpc(request, send)
        return _response(RestWriter(version_to_answer(request)).not_allowed(MethodNotFound(), ("POST",)))

    def _url(self, request: Request) -> str:
        """The address of the gateway, as this client knows it."""
        if self._settings.url:
            return self._settings.url
        scope = request.scope
        if host := request.headers.get("host"):
            return f"{scope['scheme']}://{host}{scope.get('root_path', '')}/"
        return f"{request.url.scheme}://{request.url.netloc}{scope.get('root_path', '')}/"

    # -- JSON-RPC ----------------------------------------------------------------------------------------------

    async def _jsonrpc(self, request: Request, send: Send) -> Response | None:
        version = version_to_answer(request)
        body = await self._body(request, JsonRpcWriter(NULL_ID, version))
        if not isinstance(body, bytes):
            return body
        call = read_call(body, service_params(request, self._api_keys))
        if not isinstance(call, Call):
            call_id, failure = call
            return _refused(JsonRpcWriter(call_id, version), failure, call_id)
        writer = JsonRpcWriter(call.id or NULL_ID, version_of(call.method) or version)
        return await self._exchange(request, send, call, writer, self._router)

    # -- HTTP+JSON ---------------------------------------------------------------------------------------------

    async def _http_json(self, request: Request, send: Send, path: str) -> Response | None:
        version = version_of_path(path, version_to_answer(request))
        writer = RestWriter(version)
        found = find_route(request.method, path, version_to_answer(request))
        match found:
            case None:
                return _response(writer.failure(MethodNotFound()))
            case NotAllowed(allowed):
                return _response(writer.not_allowed(MethodNotFound(), allowed))
            case Found(route):
                methods, router = self._rest[version]
                body = await self._body(request, writer, needed=route.needs_body) if route.verb == "POST" else b""
        if not isinstance(body, bytes):
            return body
        try:
            params = read_params(found, body, request.query_params, methods)
        except FailureError as exc:
            return _refused(writer, exc.failure)
        call = Call(route.method, NULL_ID, params, service_params(request, self._api_keys), size=len(body))
        return await self._exchange(request, send, call, writer, router)

    # -- both --------------------------------------------------------------------------------------------------

    async def _body(self, request: Request, writer: AnswerWriter, *, needed: bool = True) -> bytes | Response | None:
        """The body; or the response where it is refused; None where the client has gone."""
        settings = self._settings
        with anyio.CancelScope() as scope:
            self._bodies.add(scope)
            try:
                return await read_body(
                    request, self._host.memory, limit=settings.max_body, seconds=settings.body_timeout, needed=needed
                )
            except FailureError as exc:
                return _refused(writer, exc.failure, close=True)
            except BodyTimeout:
                return Response(status_code=408, headers={"connection": "close"})
            except ClientGone:
                return None
            finally:
                self._bodies.discard(scope)
        return _refused(writer, Unavailable(), close=True)  # the end has begun: the rest of the body is not awaited

    async def _exchange(
        self, request: Request, send: Send, call: Call, writer: AnswerWriter, router: Router
    ) -> Response | None:
        """Run one call, and send its events; returns the answer where that is one response."""
        self._open += 1
        try:
            access = await self._callers.access_of(call)
            if isinstance(access, Internal):
                return _response(writer.failure(access))
            with self._senders.enter(_sender_key(request, access)) as sender:
                exchange = Exchange(self._host, call)
                try:
                    context_host = HttpContextHost(self._host, access, self._url(request))
                    exchange.begin(router, access, sender, context_host, closed=self._closed)
                    return await self._answer(request, send, exchange, writer)
                finally:
                    exchange.abandon()
        finally:
            self._open -= 1
            self.on_progress()

    async def _answer(self, request: Request, send: Send, exchange: Exchange, writer: AnswerWriter) -> Response | None:
        if exchange.is_stream:
            async with _watched(request):
                answer = await send_events(exchange, writer, send, keep_alive=self._settings.keep_alive)
                return None if answer is None else _response(answer)
            return None
        if exchange.outcome is None:
            with anyio.move_on_after(UNWATCHED_SECONDS):
                await exchange.wait()
        if exchange.outcome is None:
            async with _watched(request):
                await exchange.wait()
        outcome = exchange.outcome
        if outcome is None:  # the client has gone
            return None
        return _response(writer.result(outcome) if isinstance(outcome, bytes) else writer.failure(outcome))


def _sender_key(request: Request, access: Access) -> str:
    """Who shares a limit and a turn: one identity; of anonymous callers, one address."""
    identity = access.caller
    if identity is not None and access.provider is not None:
        return f"identity:{identity.subject}"
    return f"address:{request.client.host if request.client else ''}"


def _is_local(request: Request) -> bool:
    """Whether the client is on this machine. A client without an IP address is: a unix socket, or a test."""
    try:
        client = request.client
        return client is None or client.host == "127.0.0.1" or ip_address(client.host).is_loopback
    except ValueError:
        return True


@asynccontextmanager
async def _watched(request: Request) -> AsyncGenerator[None]:
    """The block is left early when the client goes."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_watch, request, tasks.cancel_scope)
        yield
        tasks.cancel_scope.cancel()


async def _watch(request: Request, scope: anyio.CancelScope) -> None:
    """Give up when the client has gone."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
    scope.cancel()


def _refused(writer: AnswerWriter, failure: Failure, call_id: bytes | None = None, *, close: bool = False) -> Response:
    """The answer to what never became a call, which is logged."""
    note_failure(None, call_id, failure, failure, PLAIN)
    return _response(writer.failure(failure), close=close)


def _response(answer: Answer, *, close: bool = False) -> Response:
    headers = {**answer.headers, **({"connection": "close"} if close else {})}
    return Response(answer.body, answer.status, headers, answer.media_type)


async def _no_lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
