"""Makes one call of the core of an HTTP request: reads its body, identifies the caller, queues it, and returns its answer or
events.

Knows no protocol: the endpoints do.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Hashable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, cast, final

import msgspec

from ..daemon.dispatch.execution import Raised, attempt_for, provider_failed, refusal_of
from ..daemon.dispatch.metrics import OTHER
from ..daemon.dispatch.responder import note_failure
from ..daemon.memory import SMALL
from ..daemon.operations.access import Access, is_refreshing
from ..daemon.operations.context import NOTHING_SENT, ClientRefused
from ..daemon.operations.identity import Identity
from ..daemon.operations.request import Backlog, ClientInfo, Request
from ..daemon.rpc.dialect import PLAIN
from ..daemon.rpc.envelope import NULL_ID
from ..errors.codes import METHOD_NOT_FOUND
from ..errors.exceptions import FailureError
from ..errors.failures import Cancelled, Failure, Internal, MethodNotFound, Overloaded, TimedOut, Unavailable
from ..lazy import anyio
from .answers import Answer, AnswerWriter, FailureWriter
from .asgi import Send
from .requests import FIRST, ClientGone, GatewayRequest, begin_body, in_task, read_body, service_params
from .streams import FIRST_SECONDS, Events, MessageStream, encode_event, send_stream

if TYPE_CHECKING:
    from ..a2a.card import AgentCard, ApiKey
    from ..a2a.types import TaskQuery
    from ..daemon.dispatch.dispatcher import Router
    from ..daemon.documents import Documents
    from ..daemon.host import Host
    from ..daemon.operations.access import Refreshing
    from ..daemon.operations.registry import LazyOperations
    from ..daemon.operations.request import EventSink, LogLevel, Outcome, Request, Sending
    from ..daemon.operations.spec import OperationSpec
    from .page.recent_requests import RecentRequests


class Operator(Protocol):
    """What operators may do with the tasks of all callers. The results are written as JSON. Each method raises `FailureError`."""

    async def list(self, query: TaskQuery, *, operation: str, before: str) -> msgspec.Struct:
        """List a page of the tasks that run this operation, and have had their state since `before`; both may be empty."""
        ...

    async def show(self, task_id: str) -> msgspec.Struct:
        """Tell what has happened to a task."""
        ...

    async def cancel(self, task_id: str, identity: Identity | None) -> msgspec.Struct:
        """Cancel a task. `identity` is the operator."""
        ...

    async def retry(self, task_id: str, scopes: Collection[str] | None) -> msgspec.Struct:
        """Begin a new task with the message of one that failed, for its caller with these scopes, None for all."""
        ...


class HostedAgent(Protocol):
    """The agent of a daemon, as its callers by HTTP see it."""

    card: AgentCard | None
    """The declared card; None if the operations are the agent's skills."""
    api_keys: tuple[ApiKey, ...]
    """The places of an API key, as the card declares."""
    lazy_operations: LazyOperations
    """The methods of JSON-RPC, and of HTTP+JSON in A2A 1.0."""
    rest_operations: LazyOperations
    """The methods of HTTP+JSON in A2A 0.3, under the same names."""

    def public_card(self, url: str) -> AgentCard:
        """The public card, for clients that reach the daemon under this URL."""
        ...

    async def probe_store(self) -> bool:
        """Whether tasks can be stored now. Takes as long as the store does."""
        ...

    operator: Operator
    """What operators may do with the tasks of all callers."""
    grpc_port: int
    """The port where gRPC is served, for the card; 0 for none."""


def agent_of(host: Host) -> HostedAgent:
    return cast("HostedAgent", host.agent)  # the core knows no card, and one part alone runs agents


ANONYMOUS: Final = "anonymous"
"""The identity of HTTP callers without an identity provider. Their tasks are not those of the parent process."""

REFRESH_SECONDS: Final = 8.0
"""How long a request waits for what its caller's credentials need. A fetch of that takes less, or fails."""

MAX_REFRESHERS: Final = 8
"""Threads that fetch at a time. The other requests wait for their turn."""

UNWATCHED_SECONDS: Final = 0.05
"""How long a call may run before the gateway watches whether its client goes: that costs as much as most calls."""

RETRY_AFTER_MS: Final = 1000
"""The time to wait for a client that has too much in flight."""

_CANCELLED: Final = Cancelled()
_STEP: Final = "identity.resolve"


@final
class _NeverCongested:
    """HTTP clients hold up their own replies only."""

    congested: bool = False

    async def wait_for_room(self) -> None: ...


TakeEvents: TypeAlias = Callable[[MessageStream], Awaitable[None]]
"""Takes the events of a subscription until it ends. It is cancelled when the client goes."""


class Sender(msgspec.Struct, eq=False):
    """Requests of one identity, or of one address where callers are anonymous. Each has a queue, so that all take turns."""

    key: str
    backlog: Backlog
    in_flight: int = 0


MAX_SENDERS: Final = 256
"""Senders that are kept, though nothing of them is in flight."""


@final
class CallRunner:
    """Runs the calls of all clients of a gateway. `on_progress()` is called when a request has ended, which is put down in
    `recent`."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._metrics = host.request_metrics["http"]
        self._settings = host.settings
        self._api_keys = agent_of(host).api_keys
        anybody = Identity(ANONYMOUS, host.access.parent.scopes)
        provider = host.access.provider
        self.access: Final = Access(anybody, provider, known_only=True, refused=host.access.refused)
        self._refreshing = provider if is_refreshing(provider) else None
        self._refreshed: dict[Hashable, anyio.Event] = {}
        self._refreshers: anyio.CapacityLimiter | None = None
        self._senders: dict[str, Sender] = {}
        self.keep_alive: Final = host.settings.http_keep_alive
        """In seconds."""
        self.on_close: Final[list[Callable[[], None]]] = []
        """The functions that are called when the end begins."""
        self._bodies: set[anyio.CancelScope] = set()
        self._open = 0
        self.closed = False
        self.on_progress: Callable[[], None] = lambda: None
        self.recent: RecentRequests | None = None

    def close(self) -> None:
        """Answer with UNAVAILABLE from now on, but for the first request of each connection. What was accepted goes on."""
        self.closed = True
        for scope in self._bodies:
            scope.cancel()
        for tell in self.on_close:
            tell()

    def is_closed_to(self, request: GatewayRequest) -> bool:
        """Whether a request is refused since the end has begun. A client that has connected before gets one answer."""
        return self.closed and FIRST not in request.scope

    @property
    def settled(self) -> bool:
        """True when every request is answered."""
        return not self._open

    @contextmanager
    def open(self) -> Iterator[None]:
        """A request is open during the block: the daemon does not end before."""
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1
            self.on_progress()

    def url(self, request: GatewayRequest) -> str:
        """Return the address of the gateway: the public one, or the one that this client used."""
        return self._settings.http_url or request.url

    # -- who calls ---------------------------------------------------------------------------------------------

    def call(self, request: GatewayRequest, method: str) -> Request:
        """A call that this request makes, without its params."""
        return Request(method, NULL_ID, None, service_params(request, self._api_keys))

    def service_params(self, request: GatewayRequest) -> dict[str, str]:
        """The metadata of the calls that a request makes."""
        return service_params(request, self._api_keys)

    async def access_of(self, request: GatewayRequest, call: Request) -> Access | Internal:
        """The access of the caller alone; or what the call gets where that can't be told. The provider is asked once for a
        request, and after it has fetched keys where it lacks one."""
        if request.access is None:
            request.access = self.access if self.access.provider is None else await self._identified(call)
        return request.access

    async def _identified(self, call: Request) -> Access | Internal:
        authorization = call.metadata.get("authorization")
        refreshing = self._refreshing
        if refreshing is not None and authorization is not None:
            lacks_key = attempt_for(call, lambda: refreshing.lacks_key(authorization), step=_STEP)
            if isinstance(lacks_key, Raised):
                return provider_failed(call, lacks_key.exc)
            if lacks_key:
                await in_task()
                with anyio.move_on_after(REFRESH_SECONDS):
                    await self._refresh(refreshing, lacks_key)
        identity = attempt_for(call, lambda: self.access.resolve(call.metadata), step=_STEP)
        return provider_failed(call, identity.exc) if isinstance(identity, Raised) else self.access.for_caller(identity)

    async def _refresh(self, provider: Refreshing, lacking: Hashable) -> None:
        """Fetch what is lacking. Requests that lack the same meanwhile wait for the same fetch."""
        if lacking in self._refreshed:
            return await self._refreshed[lacking].wait()
        self._refreshed[lacking] = ended = anyio.Event()
        if self._refreshers is None:
            self._refreshers = anyio.CapacityLimiter(MAX_REFRESHERS)
        try:
            await anyio.to_thread.run_sync(provider.refresh, lacking, abandon_on_cancel=True, limiter=self._refreshers)
        finally:
            del self._refreshed[lacking]
            ended.set()

    async def refusal(self, request: GatewayRequest, call: Request, spec: OperationSpec) -> Failure | None:
        """Why this caller may not make this call. It is told before anything of the params is read: they cost nothing where the
        caller may not call, and no error tells what they are."""
        if self.access.unrestricted and spec.admits is None:
            return None
        access = await self.access_of(request, call)
        return access if isinstance(access, Internal) else refusal_of(access, call, spec)

    async def known_access(self, request: GatewayRequest, name: str) -> Access | Failure:
        """The access of a caller who asks for what is no operation; why it gets nothing where callers must be known."""
        access = await self.access_of(request, self.call(request, name))
        return access if isinstance(access, Internal) else access.unknown_caller or access

    def enter(self, request: GatewayRequest, access: Access) -> Sender | None:
        """Whose turn and whose limit it is, for a request that is in flight until `leave`; None where it is one too many."""
        identity = access.caller if access.provider is not None else None
        key = f"address:{request.address}" if identity is None else f"identity:{identity.subject}"
        sender = self._senders.get(key)
        if sender is None:
            sender = self._senders[key] = Sender(key, Backlog(_NeverCongested()))
        if sender.in_flight >= self._settings.http_max_requests:
            return None
        sender.in_flight += 1
        return sender

    def leave(self, sender: Sender) -> None:
        sender.in_flight -= 1
        if not sender.in_flight and len(self._senders) > MAX_SENDERS:
            del self._senders[sender.key]

    # -- what never becomes a call -----------------------------------------------------------------------------

    async def body(
        self, request: GatewayRequest, writer: FailureWriter, *, needed: bool = True
    ) -> bytes | Answer | None:
        """The body, JSON by its content type; empty where there is none and none is `needed`. The answer where it is refused;
        None where the client has gone."""
        memory, limit = self._host.memory, self._settings.max_message_bytes
        try:
            body = begin_body(request, memory, limit=limit, needed=needed)
            if body is not None:
                return body
            await in_task()
            with anyio.move_on_after(self._settings.frame_timeout) as scope:
                self._bodies.add(scope)
                try:
                    return await read_body(request, memory, limit=limit)
                finally:
                    self._bodies.discard(scope)
        except FailureError as exc:
            return self.refused(request, writer, exc.failure, close=True)
        except ClientGone:
            return None
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
    ) -> Answer:
        """The answer to what never became a call, which is logged and counted. `status` is its status where that is not the
        failure's own; with `close` its connection ends."""
        request.failure = failure
        self._metrics.refused(None, failure)
        note_failure(None, call_id, failure, failure, PLAIN)
        answer = writer.failure(failure)
        answer.status = status or answer.status
        if close:
            answer.headers["connection"] = "close"
        return answer

    def note(
        self, request: GatewayRequest, access: Access, name: str | None, outcome: Outcome | None, seconds: float
    ) -> None:
        """Put a request down among the last ones, where these are kept; `RecentRequests.add` says what of it."""
        if self.recent is not None:
            request.noted = True
            self.recent.add(access, name, outcome, seconds)

    async def note_refused(self, request: GatewayRequest, status: int, seconds: float) -> None:
        """Note a request that was answered with this status and never became a call."""
        access = await self.access_of(request, self.call(request, OTHER))
        if self.recent is not None and not isinstance(access, Internal):
            self.recent.add(access, None, request.failure or status, seconds)

    # -- calls -------------------------------------------------------------------------------------------------

    async def run(
        self,
        request: GatewayRequest,
        send: Send,
        call: Request,
        writer: AnswerWriter,
        router: Router | None = None,
        *,
        take: TakeEvents | None = None,
    ) -> Answer | None:
        """Run one call, and send its events if it has such; returns the answer where that is one response.

        A call of JSON-RPC has a `router`, which finds out what it means. Of any other the operation is known, and that its caller
        may call it. Events are sent as a response of HTTP; `take` gets them instead, as the writer makes them.
        """
        if self._host.tracing is not None:
            call.span = self._host.tracing.request(_name(call, router), call.metadata, jsonrpc=router is not None)
        started = monotonic()
        self._open += 1
        try:
            access = request.access or await self.access_of(request, call)
            if isinstance(access, Internal):
                self._metrics.refused(_name(call, router), access)
                if call.span is not None:
                    call.span.end(access)
                return writer.failure(access)
            sender = self.enter(request, access)
            exchange = Exchange(self._host, call, writer, encode_event if take is None else _as_it_is)
            try:
                contexts = HttpContextBackend(self._host, access, lambda: self.url(request))
                exchange.begin(router, access, sender, contexts, closed=self.is_closed_to(request))
                if exchange.stream is not None:
                    await in_task()
                    async with watched(request):
                        if take is None:
                            return await self._send_events(send, exchange, exchange.stream, writer)
                        await take(exchange.stream)
                        failure = exchange.outcome
                        return None if failure is None or isinstance(failure, bytes) else writer.failure(failure)
                    return None
                if exchange.outcome is None:
                    await self._wait(request, exchange)
                outcome = exchange.outcome
                if outcome is None:  # the client has gone
                    return None
                return writer.result(outcome) if isinstance(outcome, bytes) else writer.failure(outcome)
            finally:
                exchange.abandon()
                if sender is not None:
                    self.leave(sender)
                if self.recent is not None:
                    self.note(request, access, exchange.name, exchange.outcome, monotonic() - started)
        finally:
            self._open -= 1
            self.on_progress()
            if call.span is not None:
                call.span.end(_CANCELLED)  # where nothing else was told

    async def _wait(self, request: GatewayRequest, exchange: Exchange) -> None:
        """Wait for the outcome, or until the client has gone."""
        await in_task()
        with anyio.move_on_after(UNWATCHED_SECONDS):
            await exchange.wait()
        if exchange.outcome is None:
            async with watched(request):
                await exchange.wait()

    async def _send_events(
        self, send: Send, exchange: Exchange, stream: MessageStream, writer: AnswerWriter
    ) -> Answer | None:
        """Send the events of a subscription as they come, until it ends. Return instead the answer to send where it failed before
        its first event and the client expects no stream then."""
        await stream.begun(min(FIRST_SECONDS, self.keep_alive))
        outcome = exchange.outcome
        if not (stream.last or outcome is None or isinstance(outcome, bytes) or writer.fails_in_stream):
            return writer.failure(outcome)

        def last() -> bytes:
            match exchange.outcome:
                case None:
                    return b""
                case bytes(completed):
                    return encode_event(completed, name=writer.completion_event) if writer.completion_event else b""
                case failure:
                    return encode_event(writer.last_event(failure), name=writer.failure_event)

        await send_stream(send, stream, keep_alive=self.keep_alive, last=last)
        return None


@final
class Exchange:
    """One call, from its submission to its outcome: the requester of that call alone. Used on the loop's thread.

    `outcome` is None until there is one, which comes after all events. `stream` has the events of a subscription that runs.
    """

    def __init__(
        self,
        host: Host,
        call: Request,
        writer: AnswerWriter,
        frame: Callable[[bytes, int | None], bytes] = encode_event,
    ) -> None:
        self.outcome: Outcome | None = None
        self.name: str | None = None
        """The declared name of what is called, once it is known that this caller may call it."""
        self.stream: MessageStream | None = None
        self._events: Events | None = None
        self._request: Request | None = call
        self._writer = writer
        self._frame = frame
        self._host = host
        self._metrics = host.request_metrics["http"]
        self._admitted = False
        self._ended: anyio.Event | None = None
        self._held = 0

    def begin(
        self,
        router: Router | None,
        access: Access,
        sender: Sender | None,
        contexts: HttpContextBackend,
        *,
        closed: bool,
    ) -> None:
        """Submit the call of this caller, or refuse it. Without a `sender` it has too many in flight."""
        request = self._request
        assert request is not None, "it begins once"
        if closed or sender is None:
            return self._refuse(router, request, Unavailable() if closed else Overloaded(RETRY_AFTER_MS))
        refusal = None if router is None else router.route(request, access)
        if refusal is not None:
            return self._refuse(router, request, refusal)
        spec = request.spec
        self.name = spec.name
        scheduler, is_stream = self._host.scheduler, spec.mode == "stream"
        if (
            sender.backlog.full
            or (spec.limit is not None and scheduler.at_limit(spec))
            or (is_stream and scheduler.streams_full)
        ):
            return self._refuse(router, request, Overloaded(RETRY_AFTER_MS))
        if is_stream:
            self.stream = MessageStream(self._host.memory, kind="events")
        self._admitted = True
        request.context_backend = contexts
        scheduler.submit_from_task(request, self, sender.backlog)  # an inline handler may begin now, or a coroutine
        if scheduler.progressed:
            scheduler.flush()

    def _refuse(self, router: Router | None, request: Request, failure: Failure) -> None:
        self._metrics.refused(_name(request, router), failure)
        self._end(request, failure)

    async def wait(self) -> None:
        """Wait for the outcome."""
        if self.outcome is None:
            self._ended = self._host.scheduler.make_event()
            await self._ended.wait()

    def abandon(self) -> None:
        """End the exchange: without an outcome the handler is told to stop. Must be called at the end of each exchange.

        It drops the references to the exchange. Otherwise the collector would stop all requests to free the answered ones.
        """
        request, self._request = self._request, None
        held, self._held = self._held, 0
        if held:
            self._host.memory.add("replies", -held)
        if self.stream is not None:
            self.stream.close()
        if request is not None and self._admitted and self.outcome is None:
            request.end(Cancelled())

    # -- as the requester --------------------------------------------------------------------------------------

    def deliver(self, request: Request, outcome: Outcome) -> None:
        memory = self._host.memory
        if isinstance(outcome, bytes) and len(outcome) > SMALL:
            if request.spec.kind == "query" and not memory.fits(len(outcome)):
                outcome = Overloaded()  # that of a mutation is always told: it would be tried again
            else:
                self._held = len(outcome)
                memory.add("replies", self._held)  # at once: the next one that ends must find it counted
        self._metrics.ended(request, outcome)
        self._end(request, outcome)

    def sink_of(self, request: Request) -> EventSink:
        assert self.stream is not None, "it was made with the request"
        event, frame = self._writer.event, self._frame
        self._events = Events(self.stream, self._host.memory, lambda _, value, number: frame(event(value), number))
        return self._events

    def _end(self, call: Request, outcome: Outcome) -> None:
        self.outcome = outcome
        failure = None if isinstance(outcome, bytes) else outcome
        if failure is not None:
            said = call.method, call.id, failure, failure, PLAIN
            note_failure(*said, diagnosed=call.diagnosed, span=call.span, task=call.task)
        if call.span is not None:
            call.span.end(failure)
        if self.stream is not None:
            self.stream.end()
        if self._events is not None:
            self._events.discard()  # a handler that never waits does so from now on, and can be cancelled
        if self._ended is not None:
            self._ended.set()


def _as_it_is(value: bytes, number: int | None) -> bytes:
    return value


def _name(call: Request, router: Router | None) -> str | None:
    """The declared name of the operation that a call means; None where there is none that can be called."""
    return call.spec.name if router is None else router.name_of(call)


@asynccontextmanager
async def watched(request: GatewayRequest) -> AsyncGenerator[None]:
    """The block is left early when the client goes."""
    async with anyio.create_task_group() as tasks:

        async def watch() -> None:
            while (await request.receive())["type"] != "http.disconnect":
                pass
            tasks.cancel_scope.cancel()

        tasks.start_soon(watch)
        yield
        tasks.cancel_scope.cancel()


@final
class HttpContextBackend:
    """The `ContextBackend` of requests that came by HTTP. Such a client takes no messages but its answers: what is sent to it
    goes nowhere, and a request to it is refused.

    `access` says who the callers are. `url()` is the address under which they reach the gateway; empty where it is not known.
    """

    client: ClientInfo = ClientInfo()

    @property
    def rests(self) -> bool:
        return False

    def __init__(self, host: Host, access: Access, url: Callable[[], str] = str) -> None:
        self.process = host
        self._access = access
        self._url = url
        self.progress_cancels: dict[str | int, Callable[[], None]] = {}

    @property
    def url(self) -> str:
        return self._url()

    @property
    def documents(self) -> Documents:
        from ..daemon.documents import Documents  # late: handlers don't look for an editor's documents here

        return Documents()

    def notify(self, method: str, params: object) -> Sending:
        return NOTHING_SENT

    async def notify_all(self, method: str, params: Iterable[object]) -> None: ...

    def progress_token(self, request: Request) -> str | int | None:
        return None

    def progress(self, token: str | int, value: object) -> Sending | None:
        return None

    def log(self, request: Request, level: LogLevel, data: object) -> Sending | None:
        return None

    def resource_updated(self, uri: str) -> Sending | None:
        return self.process.resource_updated(uri)

    async def ask(self, method: str, params: object, timeout: float) -> bytes:
        raise ClientRefused(METHOD_NOT_FOUND, "the client takes no requests", MethodNotFound())

    def identify(self, metadata: Mapping[str, str]) -> Identity | None:
        return self._access.identify(metadata)
