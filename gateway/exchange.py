"""One call that came by HTTP, from its submission to its outcome. It is the requester of that call alone."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final, final

from ..daemon.dispatch.responder import note_failure
from ..daemon.dispatch.task_pool import out_of_task
from ..daemon.memory import SMALL
from ..daemon.operations.request import Backlog, Request
from ..daemon.rpc.dialect import PLAIN
from ..errors.failures import Cancelled, Overloaded, Unavailable
from ..lazy import anyio
from .event_queue import EventQueue, QueuedEvent

if TYPE_CHECKING:
    from ..daemon.dispatch.dispatcher import Router
    from ..daemon.host import Host
    from ..daemon.operations.access import Access
    from ..daemon.operations.request import ContextBackend, EventSink, Outcome, Request
    from ..daemon.operations.spec import OperationSpec
    from ..errors.failures import Failure


# Who sends requests by HTTP. Each has a queue of its own, so that all take turns, and a limit of requests in flight.


@final
class _NeverCongested:
    """HTTP clients hold up their own replies only."""

    congested: bool = False

    async def wait_for_room(self) -> None: ...


@final
class Sender:
    """Requests of one identity, or of one address where callers are anonymous."""

    __slots__ = ("backlog", "in_flight")

    def __init__(self) -> None:
        self.backlog: Final[Backlog] = Backlog(_NeverCongested())
        self.in_flight = 0


@final
class ClientQuota:
    """Those with requests in flight. `limit` is how many each may have."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._senders: dict[str, Sender] = {}

    def enter(self, key: str) -> Sender | None:
        """The sender of one more request, which is in flight until `leave`; None where it has too many."""
        sender = self._senders.get(key)
        if sender is None:
            sender = self._senders[key] = Sender()
        if sender.in_flight >= self._limit:
            return None
        sender.in_flight += 1
        return sender

    def leave(self, key: str, sender: Sender) -> None:
        sender.in_flight -= 1
        if not sender.in_flight:
            del self._senders[key]


@final
class Exchange:
    """Used on the loop's thread only. `outcome` is None until there is one, which comes after all events."""

    def __init__(self, host: Host, call: Request) -> None:
        self.call = call
        self.outcome: Outcome | None = None
        self.name: str | None = None
        """The declared name of what is called, once it is known that this caller may call it."""
        self._host = host
        self._metrics = host.request_metrics["http"]
        self._request: Request | None = None
        self._events: EventQueue | None = None
        self._changed: anyio.Event | None = None
        self._gave_up = False
        self._held = 0

    def begin(
        self, router: Router, access: Access, sender: Sender | None, context_backend: ContextBackend, *, closed: bool
    ) -> None:
        """Submit the call of this caller, or refuse it. Without a `sender` it has too many in flight."""
        if closed or sender is None:
            return self._refuse(router, Unavailable() if closed else Overloaded(RETRY_AFTER_MS))
        request = self.call
        refusal = router.route(request, access)
        if refusal is not None:
            return self._refuse(router, refusal)
        spec = request.spec
        self.name = spec.name
        if self._at_limit(spec) or sender.backlog.full:
            return self._refuse(router, Overloaded(RETRY_AFTER_MS))
        if spec.mode == "stream":
            self._events = EventQueue(self._host.memory, self._wake)
        self._request = request
        request.context_backend = context_backend
        request.admit(self, sender.backlog)
        scheduler = self._host.scheduler
        out_of_task(lambda: scheduler.submit(request))  # an inline handler may begin now, or a coroutine
        if scheduler.progressed:
            scheduler.flush()

    def _refuse(self, router: Router, failure: Failure) -> None:
        self._metrics.refused(router.name_of(self.call), failure)
        self._end(failure)

    def _at_limit(self, spec: OperationSpec) -> bool:
        scheduler = self._host.scheduler
        return scheduler.at_limit(spec) or (spec.mode == "stream" and scheduler.streams_full)

    @property
    def is_stream(self) -> bool:
        """Whether a subscription runs. One that was refused is no stream unless the client expects its failure in one."""
        return self._request is not None and self._request.spec.mode == "stream"

    def abandon(self) -> None:
        """Nobody waits any more: without an outcome the handler is told to stop. Must be called at the end of each exchange.

        It lets go of what refers to the exchange. Otherwise the collector would stop all requests to free the answered ones.
        """
        request, self._request = self._request, None
        held, self._held = self._held, 0
        self._host.memory.add("replies", -held)
        events, self._events = self._events, None
        if events is not None:
            events.discard()
        if request is not None and self.outcome is None:
            request.end(Cancelled())

    # -- as the requester --------------------------------------------------------------------------------------

    def deliver(self, request: Request, outcome: Outcome) -> None:
        if request.spec.kind == "query" and isinstance(outcome, bytes) and not self._has_memory(len(outcome)):
            outcome = Overloaded()  # that of a mutation is always told: it would be tried again
        if isinstance(outcome, bytes) and len(outcome) > SMALL:
            self._held = len(outcome)
            self._host.memory.add("replies", self._held)  # at once: the next one that ends must find it counted
        self._metrics.ended(request, outcome)
        self._end(outcome)

    def _has_memory(self, size: int) -> bool:
        return size <= SMALL or self._host.memory.fits(size)

    def sink_of(self, request: Request) -> EventSink:
        assert self._events is not None, "it was made with the request"
        return self._events

    def _end(self, outcome: Outcome) -> None:
        self.outcome = outcome
        call = self.call
        failure = None if isinstance(outcome, bytes) else outcome
        if failure is not None:
            note_failure(call.method, call.id, failure, failure, PLAIN, span=call.span)
        if call.span is not None:
            call.span.end(failure)
        self._wake()

    # -- what the client gets ----------------------------------------------------------------------------------

    async def wait(self) -> Outcome:
        """Wait for the outcome."""
        while self.outcome is None:
            await self._wait_for_change()
        return self.outcome

    def give_up(self) -> None:
        """Let `wait_or_give_up` return now."""
        self._gave_up = True
        self._wake()

    async def wait_or_give_up(self) -> None:
        while self.outcome is None and not self._gave_up:
            await self._wait_for_change()

    async def next_events(self, seconds: float | None) -> list[QueuedEvent]:
        """Wait for events; none after so many seconds, or where the outcome has come. `delivered` must follow."""
        assert self._events is not None, "only streams have events"
        with anyio.move_on_after(seconds):
            while not (events := self._events.take()) and self.outcome is None:
                await self._wait_for_change()
            return events
        return []

    def delivered(self, events: list[QueuedEvent]) -> None:
        if self._events is not None:
            self._events.delivered(events)

    async def _wait_for_change(self) -> None:
        self._changed = self._host.scheduler.make_event()
        await self._changed.wait()

    def _wake(self) -> None:
        if self._changed is not None:
            self._changed.set()


@final
class DisconnectTimer:
    """Tells waits that last: one clock for all, which costs each of them less than one of its own would.

    `spawn` runs the clock, which stands still while nobody waits.
    """

    def __init__(self, spawn: Callable[[Callable[[], Coroutine[Any, Any, None]]], None], seconds: float) -> None:
        self._spawn = spawn
        self._seconds = seconds
        self._running = False
        self._came = False
        self._new: set[Exchange] = set()
        self._old: set[Exchange] = set()
        """Those who waited already when the clock ticked last."""

    async def wait(self, exchange: Exchange) -> None:
        """Wait for the outcome, for one to two times so many seconds at most."""
        self._came = True
        self._new.add(exchange)
        if not self._running:
            self._running = True
            self._spawn(self._run)
        try:
            await exchange.wait_or_give_up()
        finally:
            self._new.discard(exchange)
            self._old.discard(exchange)

    async def _run(self) -> None:
        try:
            while self._came or self._old:
                self._came = False
                await anyio.sleep(self._seconds)
                for exchange in self._old:
                    exchange.give_up()
                self._old, self._new = self._new, set()
        finally:
            self._running = False


RETRY_AFTER_MS = 1000
"""What a client is told to wait that has too much in flight."""
