"""From an HTTP request to one call of the core and back: its body, who calls, whose turn it is, its answer or its events.

Knows no protocol: the endpoints do.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from time import monotonic
from typing import TYPE_CHECKING, Final, final

import msgspec
from starlette.responses import Response

from ...errors.exceptions import FailureError
from ...errors.failures import Failure, Internal, TimedOut, Unavailable
from ...lazy import anyio
from ..operations.access import Access, Identity
from ..rpc.dialect import PLAIN
from ..rpc.request_log import note_failure
from .answers import Answer, AnswerWriter
from .callers import Callers
from .context_host import HttpContextHost
from .exchange import Exchange, Overdue
from .requests import ClientGone, read_body, service_params
from .senders import Senders
from .sse import send_events

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import Send

    from ..dispatch.router import Router
    from ..host import Host
    from ..rpc.envelope import Call
    from .page.recent_requests import RecentRequests

ANONYMOUS: Final = "anonymous"
"""Who HTTP callers are where no identity provider tells them apart. Their tasks are not those of the parent process."""

UNWATCHED_SECONDS: Final = 0.05
"""How long a call may run at least before the gateway watches whether its client goes: that costs as much as most calls."""


class CallSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes in bytes, times in seconds. `url` is the public one; without it, what clients ask for."""

    url: str = ""
    max_body: int
    body_timeout: float
    keep_alive: float = 15.0
    max_in_flight: int = 1024


@final
class Calls:
    """Those of all clients of a gateway. `on_progress()` is called when a request has ended, which is put down in `recent`."""

    def __init__(self, host: Host, settings: CallSettings) -> None:
        self._host = host
        self._settings = settings
        self._api_keys = host.agent.api_keys
        self.access: Final = Access(Identity(ANONYMOUS, host.access.parent.scopes), host.access.provider)
        self._callers = Callers(self.access)
        self._senders = Senders(settings.max_in_flight)
        self._overdue = Overdue(host.spawn, UNWATCHED_SECONDS)
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

    @property
    def settled(self) -> bool:
        """True when every request is answered."""
        return not self._open

    def url(self, request: Request) -> str:
        """The address of the gateway, as this client knows it."""
        if self._settings.url:
            return self._settings.url
        scope = request.scope
        if host := request.headers.get("host"):
            return f"{scope['scheme']}://{host}{scope.get('root_path', '')}/"
        return f"{request.url.scheme}://{request.url.netloc}{scope.get('root_path', '')}/"

    def service_params(self, request: Request) -> dict[str, str]:
        """The metadata of the call that a request makes."""
        return service_params(request, self._api_keys)

    async def access_of(self, call: Call) -> Access | Internal:
        """Who calls; or what the call gets where that can't be told."""
        return await self._callers.access_of(call)

    async def body(self, request: Request, writer: AnswerWriter, *, needed: bool = True) -> bytes | Response | None:
        """The body, JSON by its content type; empty where there is none and none is `needed`. The response where it is refused;
        None where the client has gone."""
        settings = self._settings
        with anyio.move_on_after(settings.body_timeout) as scope:
            self._bodies.add(scope)
            try:
                return await read_body(request, self._host.memory, limit=settings.max_body, needed=needed)
            except FailureError as exc:
                return refused(writer, exc.failure, close=True)
            except ClientGone:
                return None
            finally:
                self._bodies.discard(scope)
        if self.closed:  # the end has begun: the rest of the body is not awaited
            return refused(writer, Unavailable(), close=True)
        return refused(writer, TimedOut(), status=408, close=True)

    async def run(
        self, request: Request, send: Send, call: Call, writer: AnswerWriter, router: Router
    ) -> Response | None:
        """Run one call, and send its events if it has such; returns the answer where that is one response."""
        self._open += 1
        started = monotonic()
        try:
            access = await self.access_of(call)
            if isinstance(access, Internal):
                return response_of(writer.failure(access))
            key = _sender_key(request, access)
            sender = self._senders.enter(key)
            exchange = Exchange(self._host, call)
            try:
                context_host = HttpContextHost(self._host, access, self.url(request))
                exchange.begin(router, access, sender, context_host, closed=self.closed)
                return await self._answer(request, send, exchange, writer)
            finally:
                exchange.abandon()
                if sender is not None:
                    self._senders.leave(key, sender)
                if self.recent is not None:
                    self.recent.add(access, exchange.name, exchange.outcome, monotonic() - started)
        finally:
            self._open -= 1
            self.on_progress()

    async def _answer(self, request: Request, send: Send, exchange: Exchange, writer: AnswerWriter) -> Response | None:
        if exchange.is_stream:
            async with _watched(request):
                answer = await send_events(exchange, writer, send, keep_alive=self._settings.keep_alive)
                return None if answer is None else response_of(answer)
            return None
        if exchange.outcome is None:
            await self._overdue.wait(exchange)
        if exchange.outcome is None:
            async with _watched(request):
                await exchange.wait()
        outcome = exchange.outcome
        if outcome is None:  # the client has gone
            return None
        return response_of(writer.result(outcome) if isinstance(outcome, bytes) else writer.failure(outcome))


def refused(
    writer: AnswerWriter,
    failure: Failure,
    call_id: bytes | None = None,
    *,
    status: int | None = None,
    close: bool = False,
) -> Response:
    """The answer to what never became a call, which is logged. `status` is its status where that is not the failure's own."""
    note_failure(None, call_id, failure, failure, PLAIN)
    response = response_of(writer.failure(failure), close=close)
    response.status_code = status or response.status_code
    return response


def response_of(answer: Answer, *, close: bool = False) -> Response:
    headers = {**answer.headers, **({"connection": "close"} if close else {})}
    return Response(answer.body, answer.status, headers, answer.media_type or None)


def _sender_key(request: Request, access: Access) -> str:
    """Who shares a limit and a turn: one identity; of anonymous callers, one address."""
    identity = access.caller
    if identity is not None and access.provider is not None:
        return f"identity:{identity.subject}"
    return f"address:{request.client.host if request.client else ''}"


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
