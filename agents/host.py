"""Connects the daemon to its agent, and starts the agent: with the first call of one of its methods, or at once."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextvars import Context as Variables
from contextvars import copy_context
from functools import lru_cache, partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, cast, final

from msgspec import UNSET
from msgspec.structs import replace

from ..a2a.methods import METHODS, V03_METHODS, VERSIONS
from ..daemon.apps import AppError
from ..daemon.dispatch.metrics import Durations
from ..daemon.logs import log
from ..daemon.operations.access import Access
from ..daemon.operations.registry import Catalogue, LazyOperations
from ..daemon.operations.spec import OperationSpec
from ..daemon.rpc.dialect import FAILURE_ENCODERS
from ..daemon.settings import Settings
from ..daemon.settings.option import MEMORY
from ..errors.wire import encode_error_response

if TYPE_CHECKING:
    import anyio.abc

    from ..a2a.card import AgentCard, ApiKey
    from ..a2a.signing import CardSigner
    from ..daemon.dispatch.inner_calls import InnerCalls
    from ..daemon.host import Host
    from ..daemon.memory import MemoryBudget
    from ..daemon.operations.request import ContextBackend, EventSink, Outcome
    from ..daemon.tracing import Tracing
    from .agent import Agent
    from .executor import AgentExecutor, RequestContext
    from .methods import CallPipeline
    from .operating import Operator
    from .runtime import Composed
    from .skills import SkillCall
    from .stores.interface import Changes, TaskStore
    from .task_backend import TaskBackend


@final
class AgentRunner:
    """One per process: the `AgentPart` of the host. `declared` is the hosted agent, None where the operations are its skills.
    `rest_operations` are those of 0.3 for HTTP+JSON, under the same names.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        agent: Agent | None,
        access: Access,
        settings: Settings,
        inner_calls: InnerCalls,
        memory: MemoryBudget,
        tracing: Tracing | None = None,
        store: TaskStore | None = None,
    ) -> None:
        for method, version in VERSIONS.items():
            FAILURE_ENCODERS[method] = partial(encode_error_response, version=version)
        self.lazy_operations: Final = LazyOperations(METHODS, self._methods)
        self.rest_operations: Final = LazyOperations(frozenset(V03_METHODS), self._rest_methods)
        self._catalogue = catalogue
        self.declared: Final = agent
        self._access = access
        self._settings = settings
        self._inner_calls = inner_calls
        self._store: TaskStore | None = None
        if store is None and settings.store == MEMORY and agent is not None:
            store = agent.store
        self._given_store = store
        self._memory = memory
        self._tracing = tracing
        self._composed: Composed | None = None
        self._tasks: anyio.abc.TaskGroup | None = None
        self._variables: Variables
        self._context_backend: ContextBackend | None = None
        self.on_updated: Callable[[Callable[[str], bool]], None] = lambda _: None
        self._sign = card_signing(settings.card_key)
        self._foreground = 0  # work for which a client waits
        self._look: Callable[[], None] = lambda: None
        self.grpc_port = 0
        """The port where gRPC is served, for the cards; 0 for none."""

    def open_store(self) -> None:
        """Open a durable store and start its threads, before anything waits for it. `close_store` must follow at the end.

        Blocks. Raises `AppError`, in one line.
        """
        if not self.durable:
            return
        from .stores.interface import StoreError  # late: only a durable store needs it

        try:
            self._store = self._create_store()
            self._store.open_early()
        except StoreError as exc:
            raise AppError(f"--store: {exc}") from None

    def _create_store(self) -> TaskStore:
        if self._given_store is not None:
            return self._given_store
        from .stores.checks import Retention  # late, as below
        from .stores.factory import create_store

        settings = self._settings
        retention = Retention(settings.max_ended_tasks, settings.ended_task_seconds)
        return create_store(settings.store, self._memory, retention)

    def close_store(self) -> None:
        """Close the store if it was opened and the agent never began. Blocks, and logs what fails."""
        if self._store is None:
            return
        from .stores.interface import StoreError  # late, as above

        try:
            self._store.close_early()
        except StoreError as exc:
            log.error("store.failed", exc=exc)

    def begin(self, tasks: anyio.abc.TaskGroup, load: Callable[[], None], context_backend: ContextBackend) -> None:
        """Run in this task group from now on. Where the store outlives the daemon the agent begins at once, because tasks
        that were left behind wait for no caller.

        `load()` has the registry take up the lazy operations. `context_backend` is for the contexts of skills.
        """
        self._tasks = tasks
        self._variables = copy_context()
        self._context_backend = context_backend
        if self.durable:
            load()
            runtime = self._compose().runtime
            runtime.on_changes(self._hear)
            runtime.start()

    def announce(self, uri: str) -> None:
        """Have the other daemons on a durable store call `on_updated` for a resource. On the loop."""
        if self._composed is not None and self.durable:
            self._composed.runtime.announce(_name_of(uri))

    def _hear(self, changes: Changes) -> None:
        self.on_updated(lambda uri: changes.may_concern(_name_of(uri)))

    @property
    def idle(self) -> bool:
        """True when the agent has nothing under way."""
        return not self._foreground and (self._composed is None or self._composed.runtime.idle)

    def drain(self, seconds: float) -> None:
        """Begin no task that another daemon could begin: this one is about to end. Callers that still wait after so many seconds
        are told what is stored."""
        if self._composed is not None:
            self._composed.runtime.drain(seconds)

    def on_idle(self, look: Callable[[], None]) -> None:
        """Have `look()` called whenever it may have become idle."""
        self._look = look
        if self._composed is not None:
            self._composed.runtime.on_idle(look)

    @property
    def card(self) -> AgentCard | None:
        """The declared card; None if the operations are the skills."""
        return None if self.declared is None else self.declared.card

    @property
    def commits(self) -> Durations:
        """How long the store took for each commit."""
        return Durations() if self._composed is None else self._composed.runtime.commits

    @property
    def failed_commits(self) -> int:
        return 0 if self._composed is None else self._composed.runtime.failed_commits

    async def count_tasks(self) -> Mapping[str, int]:
        """How many tasks the store has, by state: `working`, `input-required`; empty where it does not tell within a second."""
        from ..a2a.types import TaskState  # late: few ask

        counts = {} if self._composed is None else await self._composed.runtime.count_tasks()
        if counts is None:
            return {}
        return {each.word: counts.get(each, 0) for each in TaskState}

    async def count_queued(self) -> int | None:
        """How many tasks wait in the store's queue; None where it does not tell within a second."""
        return 0 if self._composed is None else await self._composed.runtime.count_queued()

    async def probe_store(self) -> bool:
        """Whether tasks can be stored now. Takes as long as the store does."""
        return not self.durable or (self._composed is not None and await self._composed.runtime.probe_store())

    @property
    def durable(self) -> bool:
        """Whether tasks are kept outside this process, in a store that is opened and closed."""
        return self._given_store is not None or self._settings.store != MEMORY

    @property
    def pipeline(self) -> CallPipeline:
        """The checks that every call of the agent passes."""
        return self._compose().pipeline

    @property
    def operator(self) -> Operator:
        """What operators may do with the tasks of all callers."""
        return self._compose().runtime.operator

    @property
    def api_keys(self) -> tuple[ApiKey, ...]:
        """The places in which callers may put an API key, as the agent's card declares."""
        if self.declared is None:
            return ()
        schemes = self.declared.card.security_schemes.values()
        return tuple(key for each in schemes if (key := each.api_key_security_scheme) is not None)

    def public_card(self, url: str) -> AgentCard:
        """The public card, for clients that reach the daemon under this URL."""
        return self._compose().cards.public(url)

    def _methods(self) -> Iterable[OperationSpec]:
        from ..a2a.v03 import V03  # late: most daemons are never asked for their agent
        from ..a2a.v10 import V10

        return self._compose().methods(V03, V10)

    def _rest_methods(self) -> Iterable[OperationSpec]:
        from ..a2a.v03_rest import V03_REST  # late: few daemons are called in it

        return self._compose().methods(V03_REST)

    def _compose(self) -> Composed:
        if self._composed is not None:
            return self._composed
        from .runtime import compose  # late: most daemons are never asked for their agent
        from .skills import AgentAndOperations, SkillExecutor

        operations = SkillExecutor(self._catalogue.find, self._run_skill)
        executor: AgentExecutor = operations
        if self.declared is not None:
            has_tasks = any(spec.task is not None for spec in self._catalogue.operations)
            executor = self.declared.executor
            if has_tasks:
                executor = AgentAndOperations(executor, operations, steps=self.declared.steps)

        self._composed = compose(
            self.spawn,
            self.declared,
            executor,
            services=self._catalogue.services,
            access=self._access,
            settings=self._settings,
            store=self._store or self._create_store(),
            budget=self._memory,
            tracing=self._tracing,
            sign=self._sign,
            grpc_port=lambda: self.grpc_port,
        )
        return self._composed

    # -- what the agent asks for -------------------------------------------------------------------------------

    def spawn(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run this until the end. On the loop."""
        if self._tasks is None:
            raise RuntimeError("the daemon does not run")
        self._variables.run(self._tasks.start_soon, work)  # what outlives a call is no part of it

    def spawn_foreground(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run this as `spawn` does, for a client that waits for it: until it has ended the agent is not idle."""

        async def counted() -> None:
            try:
                await work()
            finally:
                self._foreground -= 1
                self._look()

        self._foreground += 1
        self.spawn(counted)

    async def _run_skill(
        self, call: SkillCall, context: RequestContext, sink: EventSink | None, of_task: TaskBackend | None
    ) -> Outcome:
        spec, backend = call.spec, self._context_backend
        if backend is None:
            raise RuntimeError("the daemon does not run")
        if of_task is not None:
            of_task.daemon, backend = backend, cast("ContextBackend", of_task)
            spec = replace(spec, timeout=None if spec.timeout is UNSET else spec.timeout)
        return await self._inner_calls.run(
            spec,
            call.params,
            call.arguments,
            metadata=context.service_params,
            identity=context.identity,
            sink=sink,
            context_backend=backend,
        )


@lru_cache(maxsize=4096)
def _name_of(uri: str) -> str:
    """The name under which the change of a resource is announced."""
    from .stores.interface import ANNOUNCED  # late, as above

    return f"{ANNOUNCED}{blake2b(uri.encode('utf-8', 'surrogatepass'), digest_size=16).hexdigest()}"


def card_signing(path: str | None) -> Callable[[AgentCard], AgentCard]:
    """Return what signs cards with the keys of a file; cards stay as they are without one. Raises `AppError` for a file that has
    no keys."""
    return (lambda card: card) if path is None else card_signer(path).sign


def card_signer(path: str) -> CardSigner:
    """Read the keys of a file. Raises `AppError`."""
    from ..a2a.signing import MAX_KEY_BYTES, read_signer  # late: few agents sign

    try:
        with open(path, encoding="ascii") as file:
            return read_signer(file.read(MAX_KEY_BYTES))
    except OSError as exc:
        raise AppError(f"--card-key: its file can't be read: {exc.strerror}") from None
    except (ValueError, ImportError) as exc:
        reason = "no ASCII text" if isinstance(exc, UnicodeDecodeError) else exc
        raise AppError(f"--card-key: {reason}") from None


def agent_runner_of(host: Host) -> AgentRunner:
    """Make the runner of this daemon's agent, with all that the core does not know of it."""
    assert isinstance(host.agent, AgentRunner), "the core has loaded it"
    return host.agent
