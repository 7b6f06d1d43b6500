"""From an HTTP request to one call of the core and back: its body, who calls, whose turn it is, its answer or its events.

Knows no protocol: the endpoints do.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from time import monotonic
from types import coroutine
from typing import TYPE_CHECKING, Any, Final, TypeVar, final

import msgspec
from starlette.responses import Response

from ..daemon.dispatch.execution import Raised, attempt_now, provider_failed, refusal_of
from ..daemon.dispatch.metrics import OTHER
from ..daemon.dispatch.responder import note_failure
from ..daemon.operations.access import Access, is_refreshing
from ..daemon.operations.identity import Identity
from ..daemon.operations.request import Request
from ..daemon.rpc.dialect import PLAIN
from ..daemon.rpc.envelope import NULL_ID
from ..errors.exceptions import FailureError
from ..errors.failures import Cancelled, Failure, Internal, TimedOut, Unavailable
from ..lazy import anyio
from .answers import Answer, AnswerWriter, FailureWriter
from .context_backend import HttpContextBackend
from .exchange import ClientQuota, DisconnectTimer, Exchange, Sender
from .hosted_agent import agent_of
from .requests import ClientGone, GatewayRequest, address_of, read_body, service_params
from .sse import send_events

if TYPE_CHECKING:
    from starlette.types import Send

    from ..daemon.dispatch.dispatcher import Router
    from ..daemon.host import Host
    from ..daemon.operations.access import Refreshing
    from ..daemon.operations.request import Outcome
    from ..daemon.operations.spec import OperationSpec
    from .page.recent_requests import RecentRequests


# Who calls by HTTP: what the identity provider makes of a request's credentials.


_STEP: Final = "identity.resolve"

REFRESH_SECONDS: Final = 8.0
"""How long a request waits for the keys of its caller's credentials. A fetch of them takes less, or fails."""


@final
class Authenticator:
    """Asks the identity provider who calls: once for each request, and after it has fetched keys where it lacks one."""

    def __init__(self, access: Access) -> None:
        self._access = access
        provider = access.provider
        self._refreshing = provider if is_refreshing(provider) else None
        self._waiting: anyio.Event | None = None

    async def access_of(self, call: Request) -> Access | Internal:
        """The access of the caller alone; what the call gets where the provider raised something."""
        if self._access.provider is None:
            return self._access
        lacks_key = attempt_now(lambda: self._lacks_key(call.metadata.get("authorization")), step=_STEP)
        if isinstance(lacks_key, Raised):
            return provider_failed(call, lacks_key.exc)
        if lacks_key and self._refreshing is not None:
            with anyio.move_on_after(REFRESH_SECONDS):
                await self._refresh(self._refreshing)
        identity = attempt_now(lambda: self._access.resolve(call.metadata), step=_STEP)
        return (
            provider_failed(call, identity.exc) if isinstance(identity, Raised) else self._access.for_caller(identity)
        )

    def _lacks_key(self, authorization: str | None) -> bool:
        return authorization is not None and self._refreshing is not None and self._refreshing.lacks_key(authorization)

    async def _refresh(self, provider: Refreshing) -> None:
        """Whoever comes while keys are fetched waits for the same ones."""
        if self._waiting is not None:
            return await self._waiting.wait()
        self._waiting = ended = anyio.Event()
        try:
            await anyio.to_thread.run_sync(provider.refresh, abandon_on_cancel=True)
        finally:
            self._waiting = None
            ended.set()


T = TypeVar("T")

_CANCELLED: Final = Cancelled()

ANONYMOUS: Final = "anonymous"
"""Who HTTP callers are where no identity provider tells them apart. Their tasks are not those of the parent process."""

UNWATCHED_SECONDS: Final = 0.05
"""How long a call may run at least before the gateway watches whether its client goes: that costs as much as most calls."""


class CallSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes in bytes, times in seconds. `url` is the public one; without it, what clients ask for. `plain_receive`: the `receive`
    of the server opens no cancel scopes, so that it may be begun outside of one.
    """

    url: str = ""
    max_body: int
    body_timeout: float
    keep_alive: float = 15.0
    max_in_flight: int = 1024
    plain_receive: bool = False


@final
class CallRunner:
    """Those of all clients of a gateway. `on_progress()` is called when a request has ended, which is put down in `recent`."""

    def __init__(self, host: Host, settings: CallSettings) -> None:
        self._host = host
        self._metrics = host.request_metrics["http"]
        self._settings = settings
        self._api_keys = agent_of(host).api_keys
        anybody = Identity(ANONYMOUS, host.access.parent.scopes)
        self.access: Final = Access(anybody, host.access.provider, known_only=True, refused=host.access.refused)
        self._callers = Authenticator(self.access)
        self._senders = ClientQuota(settings.max_in_flight)
        self._overdue = DisconnectTimer(host.spawn, UNWATCHED_SECONDS)
        self.keep_alive: Final = settings.keep_alive
        self.on_close: Final[list[Callable[[], None]]] = []
        """What is called when the end begins."""
        self._bodies: set[anyio.CancelScope] = set()
        self._open = 0
        self.closed = False
        self.on_progress: Callable[[], None] = lambda: None
        self.recent: RecentRequests | None = None

    def close(self) -> None:
        """From now on whatever comes is answered with UNAVAILABLE. What was accepted goes on."""
        self.closed = True
        for scope in self._bodies:
            scope.cancel()
        for tell in self.on_close:
            tell()

    @property
    def settled(self) -> bool:
        """True when every request is answered."""
        return not self._open

    def url(self, request: GatewayRequest) -> str:
        """The address of the gateway, as this client knows it."""
        if self._settings.url:
            return self._settings.url
        scope = request.scope
        if host := request.headers.get("host"):
            return f"{scope['scheme']}://{host}{scope.get('root_path', '')}/"
        return f"{request.url.scheme}://{request.url.netloc}{scope.get('root_path', '')}/"

    def service_params(self, request: GatewayRequest) -> dict[str, str]:
        """The metadata of the call that a request makes."""
        return service_params(request, self._api_keys)

    async def access_of(self, request: GatewayRequest, call: Request) -> Access | Internal:
        """Who calls; or what the call gets where that can't be told. The provider is asked once for a request."""
        if request.access is None:
            request.access = await self._callers.access_of(call)
        return request.access

    async def refusal(self, request: GatewayRequest, call: Request, spec: OperationSpec) -> Failure | None:
        """Why this caller may not make this call. It is told before anything of the params is read: they cost nothing where the
        caller may not call, and no error tells what they are."""
        if self.access.unrestricted and spec.admits is None:
            return None
        access = await self.access_of(request, call)
        return access if isinstance(access, Internal) else refusal_of(access, call, spec)

    def note(
        self, request: GatewayRequest, access: Access, name: str | None, outcome: Outcome | None, seconds: float
    ) -> None:
        """Put a request down among the last ones, where these are kept; `RecentRequests.add` says what of it."""
        if self.recent is not None:
            request.noted = True
            self.recent.add(access, name, outcome, seconds)

    async def note_refused(self, request: GatewayRequest, status: int, seconds: float) -> None:
        """The same for one that was answered with this status and never became a call."""
        call = Request(OTHER, NULL_ID, None, self.service_params(request))
        access = await self.access_of(request, call)
        if self.recent is not None and not isinstance(access, Internal):
            self.recent.add(access, None, request.failure or status, seconds)

    @contextmanager
    def open(self) -> Iterator[None]:
        """A request is open during the block: the daemon does not end before."""
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1
            self.on_progress()

    @contextmanager
    def sender(self, request: GatewayRequest, access: Access) -> Iterator[Sender | None]:
        """Whose turn and whose limit it is, for a request that is in flight during the block; None where it is one too many."""
        key = _sender_key(request, access)
        sender = self._senders.enter(key)
        try:
            yield sender
        finally:
            if sender is not None:
                self._senders.leave(key, sender)

    async def body(
        self, request: GatewayRequest, writer: FailureWriter, *, needed: bool = True
    ) -> bytes | Response | None:
        """The body, JSON by its content type; empty where there is none and none is `needed`. The response where it is refused;
        None where the client has gone."""
        reading = self._read(request, writer, needed=needed)
        if self._settings.plain_receive:
            try:  # most bodies come with their heads: a time limit would cost more than they do
                reading = _rest_of(reading, reading.send(None))
            except StopIteration as whole:
                found: bytes | Response | None = whole.value
                return found
        with anyio.move_on_after(self._settings.body_timeout) as scope:
            self._bodies.add(scope)
            try:
                return await reading
            finally:
                self._bodies.discard(scope)
        if self.closed:  # the end has begun: the rest of the body is not awaited
            return self.refused(request, writer, Unavailable(), close=True)
        return self.refused(request, writer, TimedOut(), status=408, close=True)

    def refused(
        self,
        request: GatewayRequest,
        writer: FailureWriter,
        failure: Failure,
        call_id: bytes | None = None,
        *,
        status: int | None = None,
        close: bool = False,
    ) -> Response:
        """The answer to what never became a call, which is logged and counted. `status` is its status where that is not the
        failure's own."""
        request.failure = failure
        self._metrics.refused(None, failure)
        note_failure(None, call_id, failure, failure, PLAIN)
        response = response_of(writer.failure(failure), close=close)
        response.status_code = status or response.status_code
        return response

    async def _read(self, request: GatewayRequest, writer: FailureWriter, *, needed: bool) -> bytes | Response | None:
        try:
            return await read_body(request, self._host.memory, limit=self._settings.max_body, needed=needed)
        except FailureError as exc:
            return self.refused(request, writer, exc.failure, close=True)
        except ClientGone:
            return None

    async def run(
        self,
        request: GatewayRequest,
        send: Send,
        call: Request,
        writer: AnswerWriter,
        router: Router,
        *,
        jsonrpc: bool = False,
    ) -> Response | None:
        """Run one call, and send its events if it has such; returns the answer where that is one response. `jsonrpc` says
        whether it came as JSON-RPC, for its span."""
        if self._host.tracing is not None:
            call.span = self._host.tracing.request(router.name_of(call), call.metadata, jsonrpc=jsonrpc)
        started = monotonic()
        self._open += 1  # what `open` and `sender` do, which cost more
        try:
            access = request.access or await self.access_of(request, call)
            if isinstance(access, Internal):
                self._metrics.refused(router.name_of(call), access)
                if call.span is not None:
                    call.span.end(access)
                return response_of(writer.failure(access))
            key = _sender_key(request, access)
            sender = self._senders.enter(key)
            exchange = Exchange(self._host, call)
            try:
                context_backend = HttpContextBackend(self._host, access, partial(self.url, request))
                exchange.begin(router, access, sender, context_backend, closed=self.closed)
                return await self._answer(request, send, exchange, writer)
            finally:
                exchange.abandon()
                if sender is not None:
                    self._senders.leave(key, sender)
                self.note(request, access, exchange.name, exchange.outcome, monotonic() - started)
        finally:
            if call.span is not None:
                call.span.end(_CANCELLED)  # where nothing else was told
            self._open -= 1
            self.on_progress()

    async def _answer(
        self, request: GatewayRequest, send: Send, exchange: Exchange, writer: AnswerWriter
    ) -> Response | None:
        if exchange.is_stream:
            async with watched(request):
                answer = await send_events(exchange, writer, send, keep_alive=self.keep_alive)
                return None if answer is None else response_of(answer)
            return None
        if exchange.outcome is None:
            await self._overdue.wait(exchange)
        if exchange.outcome is None:
            async with watched(request):
                await exchange.wait()
        outcome = exchange.outcome
        if outcome is None:  # the client has gone
            return None
        return response_of(writer.result(outcome) if isinstance(outcome, bytes) else writer.failure(outcome))


def response_of(answer: Answer, *, close: bool = False) -> Response:
    return _WholeResponse(answer, {**answer.headers, "connection": "close"} if close else answer.headers)


@final
class _WholeResponse(Response):
    """A response that is made in less time: its body is made already, and its headers are known to be fit."""

    def __init__(self, answer: Answer, headers: Mapping[str, str]) -> None:
        self.status_code = answer.status
        self.body = answer.body
        self.background = None
        self.raw_headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
        if answer.status not in _WITHOUT_BODY:
            self.raw_headers.append((b"content-length", b"%d" % len(answer.body)))
        if answer.media_type:
            self.raw_headers.append((b"content-type", answer.media_type.encode("latin-1")))


_WITHOUT_BODY: Final = (204, 304)


@coroutine
def _rest_of(work: Coroutine[Any, Any, T], awaited: object) -> Generator[Any, Any, T]:
    """Await what is left of a coroutine that has made its first step, and waits for this."""
    while True:
        step: Callable[..., Any] = work.send
        argument: object
        try:
            argument = yield awaited
        except BaseException as exc:  # noqa: BLE001 - whatever the loop throws in belongs to the work
            step, argument = work.throw, exc
        try:
            awaited = step(argument)
        except StopIteration as stop:
            found: T = stop.value
            return found


def _sender_key(request: GatewayRequest, access: Access) -> str:
    """Who shares a limit and a turn: one identity; of anonymous callers, one address."""
    identity = access.caller
    if identity is not None and access.provider is not None:
        return f"identity:{identity.subject}"
    return f"address:{address_of(request)}"


@asynccontextmanager
async def watched(request: GatewayRequest) -> AsyncGenerator[None]:
    """The block is left early when the client goes."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_watch, request, tasks.cancel_scope)
        yield
        tasks.cancel_scope.cancel()


async def _watch(request: GatewayRequest, scope: anyio.CancelScope) -> None:
    """Give up when the client has gone."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
    scope.cancel()
