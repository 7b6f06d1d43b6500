"""The agent's lifetime in a daemon: makes its parts, opens the store, runs what moves its tasks, and closes both.

It begins with the agent's first call, or with the daemon where the store is durable.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any, Final, TypeVar, final

import msgspec

from ..a2a.types import TERMINAL, StatusChanged, TaskEvent, TaskState, TaskUpdate
from ..a2a.v03 import V03
from ..a2a.v10 import V10
from ..a2a.version import ProtocolVersion
from ..daemon.dispatch.execution import Raised, attempt, attempt_now
from ..daemon.dispatch.metrics import Durations
from ..daemon.logs import log
from ..daemon.memory import MemoryBudget
from ..daemon.operations.access import Access
from ..daemon.operations.service import Service
from ..daemon.operations.spec import OperationSpec
from ..daemon.settings import Settings
from ..lazy import anyio
from ..version import __version__
from .agent import Agent
from .card_builder import CardBuilder, stdio_interfaces
from .cluster import SHARED_POLL_SECONDS, Cluster, LostTasks
from .delegator import Delegator
from .executor import AgentExecutor
from .live_task import LiveTask, TaskCache, TaskMemory
from .methods import CallPipeline, JsonRpcHandler, operations
from .notifier import PushNotifier, is_push_available
from .push_configs import PushConfigs
from .request_handler import RequestHandler
from .runner import CANCEL_SECONDS, Runner
from .stores.failures import log_failure
from .stores.interface import Changes, StoreError, TaskStore

if TYPE_CHECKING:
    from ..a2a.card import AgentCard
    from ..daemon.tracing import Tracing
    from .operating import Operator


T = TypeVar("T")

PUSH_DRAIN_SECONDS: Final = 0.3
"""How long push notifications that still wait are tried at the end."""

CLOSE_SECONDS: Final = 1.0
"""How long closing the store may take."""

COUNT_SECONDS: Final = 1.0
"""How long counting the tasks may take."""


class Role(msgspec.Struct, frozen=True):
    """The role of a daemon among those on one store. One that `queues` leaves messages to any daemon that `executes`. Each of
    these takes some while it runs fewer than `max_runs` executions."""

    executes: bool = True
    queues: bool = False
    max_runs: int = 100


@final
class Runtime:
    """One per daemon, in whose task group `spawn` starts it. `name` is that of the agent. Another daemon may take
    `remote_cancel_seconds` to cancel a task; one that it may change is looked at every `shared_poll_seconds`."""

    def __init__(  # noqa: PLR0913 - what an agent is, and what it runs in
        self,
        spawn: Callable[[Callable[[], Coroutine[Any, Any, None]]], object],
        store: TaskStore,
        executor: AgentExecutor,
        notifier: PushNotifier | None,
        *,
        replies_without_task: bool = False,
        deduplicates_messages: bool = True,
        steps: bool = False,
        memory: TaskMemory | None = None,
        lacks_push_extra: bool = False,
        remote_cancel_seconds: float = CANCEL_SECONDS,
        shared_poll_seconds: float = SHARED_POLL_SECONDS,
        role: Role = Role(),  # noqa: B008 - immutable
        tracing: Tracing | None = None,
        name: str = "",
    ) -> None:
        self._spawn_in_daemon = spawn
        self._store = store
        self._notifier = notifier
        self._cache = TaskCache(store, memory, tracing)
        self._cache.on_lost = self._on_lost
        if notifier is not None:
            self._cache.on_push = partial(self._push, notifier)
        self._runner = Runner(
            executor, self._cache, replies_without_task=replies_without_task, steps=steps, tracing=tracing, name=name
        )
        self._cluster = Cluster(
            self._runner,
            executes=role.executes,
            max_runs=role.max_runs,
            shared_poll_seconds=shared_poll_seconds,
        )
        self._lost_tasks = LostTasks(self._runner)
        self._opened: anyio.Event | None = None
        self._probe_failed = False
        self.handler = RequestHandler(
            self._runner,
            Delegator(self._runner, queues=role.queues),
            PushConfigs(self._cache, notifier, lacks_extra=lacks_push_extra),
            self._cluster.follow,
            self.start,
            remote_cancel_seconds=remote_cancel_seconds,
            deduplicates_messages=deduplicates_messages,
        )

    @property
    def idle(self) -> bool:
        """Whether nothing is executed but what only waits for its client, and the store has everything."""
        resting = self._runner.resting if self._store.durable else 0
        return self._runner.count == resting and self._cache.idle

    def on_idle(self, check: Callable[[], None]) -> None:
        """Have `check()` called whenever `idle` may have become true."""
        self._runner.on_idle = self._cache.on_idle = check

    def announce(self, name: str) -> None:
        """See `Cluster.announce`."""
        self._cluster.announce(name)

    def on_changes(self, hear: Callable[[Changes], None]) -> None:
        """Have `hear(changes)` called with what other daemons have changed."""
        self._cluster.on_changes = hear

    def start(self) -> anyio.Event:
        """Start unless that was done. The event is set when the store is open."""
        if self._opened is None:
            self._opened = anyio.Event()
            self._spawn_in_daemon(partial(self._run, self._opened))
        return self._opened

    def drain(self, seconds: float) -> None:
        """Take no more work from the store, and leave to other daemons what waits here. Senders that still wait after so many
        seconds get their tasks as they are stored."""
        if self._store.durable:
            self._cluster.drain()
            if self._store_is_open:
                self._runner.spawn(self.handler.let_go, seconds)

    # -- what operators ask ------------------------------------------------------------------------------------

    @property
    def operator(self) -> Operator:
        """What operators may do with the tasks of all callers."""
        from .operating import Operator  # late: few daemons have any

        return Operator(self.handler, self._store)

    @property
    def commits(self) -> Durations:
        """How long the store took for each commit."""
        return self._cache.durations

    @property
    def failed_commits(self) -> int:
        return self._cache.failed

    @property
    def _store_is_open(self) -> bool:
        return self._opened is not None and self._opened.is_set() and not self.handler.store_failed

    async def count_tasks(self) -> Mapping[TaskState, int] | None:
        """How many tasks the store has in each state; None where it does not tell within a second."""
        return await self._ask(self._store.count, {})

    async def count_queued(self) -> int | None:
        """How many tasks wait in the store's queue; None where it does not tell within a second."""
        return await self._ask(self._store.count_queued, 0)

    async def _ask(self, ask: Callable[[], Awaitable[T]], empty: T) -> T | None:
        """Return the store's answer; `empty` where it is in memory and not open, as it is opened for the first call."""
        with anyio.move_on_after(COUNT_SECONDS):
            if not self._store_is_open:
                return None if self._store.durable else empty
            found = await attempt(ask)
            return None if isinstance(found, Raised) else found
        return None

    async def probe_store(self) -> bool:
        """Whether the store could take a commit now. Takes as long as the store does. Only the first of several failures is
        logged."""
        if not self._store_is_open:
            return False
        probed = await attempt(self._store.probe)
        if isinstance(probed, Raised) and not self._probe_failed:
            log_failure(probed.exc)
        self._probe_failed = isinstance(probed, Raised)
        return not self._probe_failed

    # -- the run -----------------------------------------------------------------------------------------------

    async def _run(self, opened: anyio.Event) -> None:
        """Run until cancelled."""
        try:
            await self._store.open()
        except StoreError as exc:
            log_failure(exc)
            self.handler.store_failed = True
            return opened.set()
        try:
            async with anyio.create_task_group() as group, self._pushing(group):
                self._runner.start(group)
                group.start_soon(self._cache.run)
                opened.set()
                await (self._cluster.run() if self._store.durable else anyio.sleep_forever())
        finally:
            await self._close()

    @asynccontextmanager
    async def _pushing(self, tasks: anyio.abc.TaskGroup) -> AsyncIterator[None]:
        """Send push notifications during the block; at its end, even when cancelled, try those that still wait."""
        notifier = self._notifier
        if notifier is None:
            yield
            return
        scope = anyio.CancelScope(shield=True)

        async def push() -> None:
            with scope:
                await notifier.run()

        tasks.start_soon(push)
        try:
            yield
        finally:
            with anyio.CancelScope(shield=True):  # `drain` has its own deadline
                await notifier.drain(PUSH_DRAIN_SECONDS)
            scope.cancel()

    async def _close(self) -> None:
        with anyio.CancelScope(shield=True), anyio.move_on_after(CLOSE_SECONDS):
            try:
                await self._store.close()
            except StoreError as exc:
                log_failure(exc)

    # -- its parts' callbacks ----------------------------------------------------------------------------------

    def _push(self, notifier: PushNotifier, live: LiveTask, events: Sequence[TaskEvent]) -> None:
        """Queue a notification of every event for every push config of the task."""
        for event, target in product(events, live.push_targets):
            body = attempt_now(partial(push_body, live, event, target.protocol_version))
            if isinstance(body, Raised):
                log.warning("push.failed", task=live.id, config=target.config.id, reason="unwritable")
            elif body is not None:
                is_final = isinstance(event, StatusChanged) and event.status.state in TERMINAL
                notifier.enqueue(target, body, final=is_final)

    def _on_lost(self, live: LiveTask) -> None:
        self._runner.interrupt(live)
        self._lost_tasks.add(live)


class Composed(msgspec.Struct, frozen=True):
    """The agent's runtime, which starts with the first call; what every call passes; its cards; and `methods(version, …)`, which
    makes those of A2A."""

    runtime: Runtime
    pipeline: CallPipeline
    cards: CardBuilder
    methods: Callable[..., list[OperationSpec]]


def compose(  # noqa: PLR0913 - what an agent is made of
    spawn: Callable[[Callable[[], Coroutine[Any, Any, None]]], None],
    agent: Agent | None,
    executor: AgentExecutor,
    *,
    services: Sequence[Service],
    access: Access,
    settings: Settings,
    store: TaskStore,
    budget: MemoryBudget,
    tracing: Tracing | None,
    sign: Callable[[AgentCard], AgentCard],
    grpc_port: Callable[[], int],
) -> Composed:
    """Make an agent, which `spawn` runs. Without an `agent`, the operations of the `services` are its skills. Tasks in memory
    count in the `budget`. Without `tracing` no spans are recorded. Its cards are signed by `sign`,
    and name the port `grpc_port()` unless it is 0."""
    wants_push = agent is None or bool(agent.card.capabilities.push_notifications)
    notifier: PushNotifier | None = None
    if wants_push and is_push_available():
        notifier = PushNotifier(allow_private=settings.push_private, tracing=tracing, budget=budget)
    runtime = Runtime(
        spawn,
        store,
        executor,
        notifier,
        replies_without_task=agent is not None and agent.replies_without_task,
        deduplicates_messages=agent is None or agent.deduplicates_messages,
        steps=agent is not None and agent.steps,
        lacks_push_extra=wants_push and notifier is None,
        memory=TaskMemory(budget, durable=store.durable, free=store.free),
        tracing=tracing,
        role=Role(executes=settings.role != "front", queues=settings.role != "both", max_runs=settings.max_runs),
        name="operations" if agent is None else agent.card.name,
    )
    interfaces, pushes = stdio_interfaces(settings), notifier is not None
    cards = CardBuilder(
        services,
        agent,
        access,
        version=__version__,
        interfaces=interfaces,
        pushes=pushes,
        sign=sign,
        grpc_port=grpc_port,
    )
    capabilities = cards.public().capabilities
    pipeline = CallPipeline(
        runtime.handler,
        agent,
        access,
        extensions=capabilities.extensions,
        streaming=bool(capabilities.streaming),
        request_timeout=settings.request_timeout,
    )
    modes = None if agent is None else agent.input_modes

    def methods(*versions: ProtocolVersion) -> list[OperationSpec]:
        handlers = [(each, JsonRpcHandler(pipeline, each, notifier, cards, input_modes=modes)) for each in versions]
        return [spec for version, handler in handlers for spec in operations(pipeline, version, handler)]

    return Composed(runtime, pipeline, cards, methods)


def push_body(live: LiveTask, event: TaskEvent, version: str) -> bytes | None:
    """Return the body of a notification of a task's event in a version; None where the event is not pushed."""
    writer = V03 if version == V03.name else V10
    body = writer.encode_notification(TaskUpdate(live.id, live.context_id, event), live.task)
    return None if body is None else bytes(body)  # `Raw` only says that it is bytes
