"""Holds the parts that exist once per process and serve every client: operations, access, credentials, the agent, the runners.

Knows no client: those are in `connection/`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, final

from ..errors.decoders import ExternalSchema
from ..errors.exceptions import FailureError
from ..errors.failures import Overloaded
from ..lazy import anyio
from . import plugins
from .apps import AppError
from .dispatch.execution import APP_LOOP
from .dispatch.inner_calls import InnerCalls, target_of
from .dispatch.metrics import RequestMetrics
from .dispatch.scheduler import Scheduler
from .dispatch.task_pool import HandlerLoop, guard_task_groups
from .dispatch.thread_pool import LoopPortal
from .lifespans import Lifespans
from .logs import log
from .memory import MemoryBudget, fitting_memory, fitting_threads
from .operations.access import PARENT, Access
from .operations.registry import Catalogue, LazyOperations, Registry, ServerInfo, server_of
from .operations.service import DeclarationError
from .process.loop_watch import LoopWatch
from .process.signals import Wakeup
from .settings import Settings

if TYPE_CHECKING:
    from .hosted_agent import AgentDeclaration, AgentPart
    from .operations.context import Context
    from .operations.request import ContextBackend, Request, ResourceWatcher, Sending
    from .operations.service import Service
    from .operations.spec import OperationSpec
    from .tracing import Tracing

DISCOVERY: Final = frozenset(
    {"services/list", "services/schema", "services/call", "services/subscribe", "services/metrics", "rpc.discover"}
)
"""The names of the methods of discovery, which is loaded when one of them is called."""

T = TypeVar("T")

MAX_NAMED: Final = 5
"""How many methods a line of the log names."""


@final
class Host:
    """Hosts `services` and an agent: `agent`, or one whose skills the services are.

    `credentials` are those for outbound calls, by name. `store` keeps the tasks, instead of what the settings name. `bridge`
    is the dialect of all clients: a `Plugin` whose sessions are those of another server.
    Raises `DeclarationError` for names that are declared twice, and
    `AppError` where the settings ask for what is not installed.
    """

    def __init__(
        self,
        services: Sequence[Service],
        settings: Settings,
        *,
        version: str,
        access: Access | None = None,
        credentials: Mapping[str, str] | None = None,
        agent: AgentDeclaration | None = None,
        store: object | None = None,
        bridge: object | None = None,
    ) -> None:
        self.version = version
        self.on_listening: Callable[[str], object] = lambda _: None
        """Called on the loop with the URL when HTTP is served."""
        self.bridge: Final = bridge
        self.started: Final = monotonic()
        self.settings: Final = settings
        self.access: Final = access or Access(PARENT)
        self.catalogue: Final = Catalogue(services, credentials or {})
        self.memory: Final = MemoryBudget(fitting_memory(settings.max_memory))
        self.request_metrics: Final[Mapping[Literal["stdio", "http"], RequestMetrics]] = {
            "stdio": RequestMetrics(),
            "http": RequestMetrics(),
        }
        self._wakeup = Wakeup()
        self.watch: Final = LoopWatch(settings.blocked_after)
        self.scheduler: Final = Scheduler(
            limit=settings.max_concurrency,
            thread_limit=fitting_threads(settings.max_threads),
            ordered=settings.ordered,
            request_timeout=settings.request_timeout,
            limits_time=not settings.debug,
            memory=self.memory,
            watch=self.watch,
            notify_loop=self._wakeup.notify,
        )
        self.tracing: Final = _tracing() if settings.otel else None
        self.inner_calls: Final = InnerCalls(self.scheduler, settings.max_call_depth, self.tracing)
        self.agent: Final[AgentPart] = plugins.load("agents", "host")(
            self.catalogue, agent, self.access, settings, self.inner_calls, self.memory, self.tracing, store
        )
        self.lifespans: Final = Lifespans(services)
        self.registry: Final = Registry(
            services, LazyOperations(DISCOVERY, self._discovery), self.agent.lazy_operations
        )
        if agent is not None:
            self._check_reachable(agent)
        self._warn_of_plain()
        self.operation_watchers: Final[list[Callable[[], None]]] = []
        """The functions that are called after each change of the operations, on the loop."""
        self.change_count = 0
        """How often the operations have changed: what is made of them is made anew."""
        for service in services:
            service.late.watch(self._take_late)
            if service.changes is not None:
                service.changes.watch(self._take_changes)
        self.resource_watchers: Final[list[ResourceWatcher]] = []
        self.agent.on_updated = self._hear_updated
        self._portal = LoopPortal(self.scheduler.threads, lambda: self._tasks)
        self._tasks: anyio.abc.TaskGroup | None = None
        self._waiting: list[Callable[[], Coroutine[Any, Any, None]]] = []

    def start(
        self, tasks: anyio.abc.TaskGroup, context_backend: ContextBackend, *, on_wakeup: Callable[[], None]
    ) -> None:
        """Run in this task group from now on, until it is cancelled.

        `context_backend` is for the contexts of skills that the agent runs. `on_wakeup()` is called on the loop after `wake()`.
        """
        guard_task_groups()
        self._tasks = tasks
        self._portal = LoopPortal(self.scheduler.threads, lambda: self._tasks)  # anew: this is surely the loop's thread
        self.watch_app()  # all tasks that run code of the app begin below
        self.scheduler.start(tasks)
        tasks.start_soon(self._listen, on_wakeup)
        for work in self._waiting:
            tasks.start_soon(work)
        self.lifespans.start(tasks)
        self.agent.begin(tasks, self.registry.load, context_backend)

    def begin_tracing(self) -> None:
        """Have spans go where they are to. A second call does nothing. Raises `AppError` where that can't be."""
        if self.tracing is not None:
            named = self._named()
            self.tracing.begin(named.name, named.version)

    def watch_app(self) -> None:
        """Have what is called of the app from here on, and in tasks that begin here, watched as its handlers are, and as a part
        of no request."""
        APP_LOOP.set(HandlerLoop(self.watch, lambda: None))
        if self.tracing is not None:
            self.tracing.leave()

    def spawn(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run this in a task of its own, until the end. It must not raise. Once there is a loop, where there is none yet."""
        if self._tasks is None:
            self._waiting.append(work)
        else:
            self._tasks.start_soon(work)

    def close(self, seconds: float) -> None:
        """Let the worker threads end, and say what is left to say, for at most so long. Nothing runs afterwards."""
        for service in self.catalogue.services:
            service.late.leave(self._take_late)
            if service.changes is not None:
                service.changes.leave(self._take_changes)
        self.watch.close()
        self.scheduler.threads.close()
        self.flush(seconds)

    def _take_late(self) -> None:
        """An operation was declared, in any thread."""
        self._call_on_loop(self._take_changes)

    def _call_on_loop(self, work: Callable[..., None], *args: object) -> None:
        if self._portal.on_loop:
            work(*args)
        else:
            self.scheduler.threads.call_on_loop(work, *args)

    def _take_changes(self) -> None:
        refused = self.registry.refresh()
        if refused:
            log.error("operations.declared_twice", methods=refused[:MAX_NAMED])
        self.change_count += 1
        for watcher in [*self.operation_watchers]:
            watcher()

    def flush(self, seconds: float) -> None:
        """Have the spans that have ended exported, for at most so long. Blocks."""
        if self.tracing is not None:
            self.tracing.flush(seconds)

    def wake(self) -> None:
        """Have `on_wakeup` called on the loop soon. From any thread or signal handler."""
        self._wakeup.notify()

    async def _listen(self, on_wakeup: Callable[[], None]) -> None:
        """Take what worker threads and signal handlers have to say."""

        def take() -> None:
            self.scheduler.collect()
            on_wakeup()

        stop = self._wakeup.watch(take)
        try:
            while stop is None:
                await self._wakeup.wait()
                take()
            await anyio.sleep_forever()
        finally:
            if stop is not None:
                stop()

    @property
    def idle(self) -> bool:
        """True when no request runs or waits and the agent has nothing under way."""
        return self.scheduler.rests and self.agent.idle

    def run_from_thread(self, request: Request | None, work: Callable[[], Awaitable[T]]) -> T:
        """Run something on the loop, as a part of this request, and wait for it in a worker thread."""
        return self._portal.run(request, work)

    async def call(self, parent: Request, name: str, params: object, *, continue_running: bool) -> bytes:
        """The result of the operation of this name, which the handler of `parent` calls. Raises as `InnerCalls.call` does."""
        spec = target_of(self.registry, parent.spec, name)
        return await self.inner_calls.call(spec, params, parent, continue_running=continue_running)

    def hold_memory(self, size: int) -> None:
        """Count what a handler keeps. Raises `FailureError(Overloaded)` where there is no room."""
        if size > 0 and not self.memory.fits(size):
            raise FailureError(Overloaded())
        self.memory.add("handlers", size)

    def state_of(self, namespace: str) -> Any:
        """Return the value that the lifespan of a service yielded."""
        return self.lifespans.state_of(namespace)

    async def enter_late(self, namespace: str) -> None:
        """Wait until the lifespan of a service is entered that is entered with its first call. Raises what it raises."""
        await self.lifespans.enter_late(namespace)

    def credentials_of(self, namespace: str) -> Mapping[str, str]:
        return self.catalogue.credentials_of(namespace)

    def resource_updated(self, uri: str, own: Callable[[str], Sending | None] | None = None) -> Sending | None:
        """Tell all clients that want to hear of it, also those of other daemons on the store, from any thread. What is returned
        waits for one of them alone, whose `tell` is given.
        """
        if self.agent.durable:
            self._call_on_loop(self.agent.announce, uri)
        return self._tell_updated(uri, own)

    def _hear_updated(self, may_concern: Callable[[str], bool]) -> None:
        """Other daemons have announced resources."""
        for uri in {uri for watcher in self.resource_watchers for uri in watcher.subscriptions()}:
            if may_concern(uri):
                self._tell_updated(uri)

    def _tell_updated(self, uri: str, own: Callable[[str], Sending | None] | None = None) -> Sending | None:
        sent = {watcher.tell: watcher.tell(uri) for watcher in [*self.resource_watchers]}
        return None if own is None else sent.get(own)

    def offered(self, context: Context) -> Iterator[OperationSpec]:
        """The external operations that this caller may call, in the order of declaration."""
        return self.catalogue.visible_to(context.identity)

    def _discovery(self) -> list[OperationSpec]:
        from .discovery import discovery, rpc_discovery  # late: few callers ask

        metrics = plugins.load("service", "metrics")
        return [*discovery(self).operations, *metrics(self).operations, *rpc_discovery(self).operations]

    @property
    def dialect(self) -> str:
        """The dialect of clients: that of the setting, else that of the services."""
        if self.settings.dialect is not None:
            return self.settings.dialect
        found: str | None = None
        for service in self.catalogue.services:
            if found is not None and service.dialect not in (None, found):
                raise DeclarationError(
                    f"the services declare different dialects ({found}, {service.dialect}); choose one with --dialect"
                )
            found = found or service.dialect
        return found or "plain"

    def _check_reachable(self, agent: AgentDeclaration) -> None:
        """Raise `DeclarationError` where the dialect has no methods for agents and nothing else is served; log it otherwise."""
        if self.dialect == plugins.AUTO or plugins.load("dialect", self.dialect).HAS_AGENT_METHODS:
            return
        why = f"with --dialect {self.dialect} no client can reach an agent; plain and acp have methods for it"
        if not self.catalogue.services:
            raise DeclarationError(f"agent {agent.name!r}: {why}")
        log.warning("agent.unreachable", agent=agent.name, dialect=self.dialect, hint=why)

    def _warn_of_plain(self) -> None:
        """Log what no client will find, since its dialect was neither declared nor chosen."""
        if self.settings.dialect is not None:
            return
        only_in: dict[str, list[str]] = {}
        for spec in self.catalogue.operations:
            named = (name for name, prefixes in plugins.FOUND_ONLY_IN.items() if spec.name.startswith(prefixes))
            meant = next(named, None) if spec.offer is None else spec.offer.dialect
            if isinstance(spec.returns, ExternalSchema):  # another daemon's: what it declares is not ours to choose
                meant = None
            if meant is not None:
                only_in.setdefault(meant, []).append(spec.name)
        for meant, methods in only_in.items():
            if self.dialect == "plain" and not (meant == "mcp" and self.settings.http_mcp):
                hint = (
                    f"only clients of {meant} find these, and the dialect is plain: write Service(…, dialect={meant!r})"
                )
                log.warning("dialect.undeclared", methods=methods[:MAX_NAMED], hint=hint)

    @property
    def server(self) -> ServerInfo:
        """Name and version: of the service where one alone is hosted and says its version, else of the daemon."""
        return server_of(self.catalogue.services, self.version)

    def _named(self) -> ServerInfo:
        """Return the name for observers of many programs: that of the agent or the service which alone is hosted."""
        agent, services = self.agent.declared, self.catalogue.services
        if agent is not None and not services:
            return ServerInfo(agent.name, agent.version or self.version)
        if agent is None and len(services) == 1 and services[0].namespace:
            return ServerInfo(services[0].namespace, services[0].version or self.version)
        return self.server


def _tracing() -> Tracing:
    """Raises `AppError` where OpenTelemetry is not installed."""
    try:
        recorder: Tracing = plugins.load("tracing", "otel")()
    except ImportError as exc:
        raise AppError("--otel needs opentelemetry-sdk: pip install 'discreet[otel]'") from exc
    return recorder
