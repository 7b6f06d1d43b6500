"""Where every call of an agent's method arrives: who calls, in which version, past which interceptors; and how it fails.

What the handler raises leaves here as the dialect of the method says it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import aclosing, asynccontextmanager
from functools import partial
from math import inf
from typing import Any, Final, NoReturn, Protocol, TypeVar, final

import msgspec

from ....errors.exceptions import FailureError, OperationError
from ....errors.failures import (
    AgentFailure,
    AuthenticationRequired,
    Cancelled,
    ExtensionSupportRequired,
    InsufficientPermissions,
    Internal,
    UnsupportedOperation,
    VersionNotSupported,
)
from ...dispatch import execution
from ...logs import log
from ...operations.access import Access, Identity
from ...operations.context import Context
from ..agent import Agent
from ..card.model import SecurityRequirement, scopes_of
from ..model.types import TaskState
from ..tasks.executor import AgentCall, Interceptor, Outcome
from ..versions.version import Dialect
from .card_builder import CardBuilder
from .request_handler import Caller, RequestHandler, Streamed
from .runtime import Runtime

T = TypeVar("T")

AFTER_SECONDS: Final = 1.0
"""How long interceptors may take behind a call that was cancelled."""


class Host(Protocol):
    """What the agent needs of the daemon around it."""

    def spawn(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None: ...


@final
class CallPipeline:
    """One per daemon. `answer` and `events` wrap what a method does."""

    def __init__(self, host: Host, runtime: Runtime, cards: CardBuilder, agent: Agent | None, access: Access) -> None:
        self._host = host
        self._runtime = runtime
        self._interceptors: Sequence[Interceptor] = () if agent is None else agent.interceptors
        self.cards: Final = cards
        self._login = access.provider
        self._alternatives = () if agent is None else agent.card.security_requirements
        self._guarded = agent is not None and self._login is not None and not any(map(_is_empty, self._alternatives))
        card = cards.public()
        self._streaming = card.capabilities.streaming
        self._required = frozenset(each.uri for each in card.capabilities.extensions if each.required)

    async def answer(
        self,
        ctx: Context,
        dialect: Dialect,
        work: Callable[[RequestHandler, Caller], Awaitable[T]],
        *,
        task_id: str | None = None,
    ) -> T:
        """What `work` gives for this caller. Raises `FailureError` only, and cancellation."""
        try:
            caller = self._caller(ctx, dialect)
            handler = await self._runtime.ready(self._host.spawn)
            if not self._interceptors:
                return await work(handler, caller)
            async with self._between(ctx, caller, task_id):
                return await work(handler, caller)
        except FailureError as exc:
            _translate(exc, dialect)

    async def events(
        self,
        ctx: Context,
        dialect: Dialect,
        work: Callable[[RequestHandler, Caller], AsyncGenerator[Streamed, None]],
        *,
        task_id: str | None = None,
    ) -> AsyncGenerator[Streamed, None]:
        """The same for a stream."""
        try:
            caller = self._caller(ctx, dialect)
            if not self._streaming:
                raise FailureError(UnsupportedOperation(reason="The agent does not stream."))
            handler = await self._runtime.ready(self._host.spawn)
            async with self._between(ctx, caller, task_id), aclosing(work(handler, caller)) as stream:
                async for each in stream:
                    yield each
        except FailureError as exc:
            _translate(exc, dialect)

    def _caller(self, ctx: Context, dialect: Dialect) -> Caller:
        metadata = ctx.metadata
        wanted = metadata.get("a2a-version", "").strip()
        if wanted and not dialect.speaks(wanted):
            raise FailureError(VersionNotSupported(accepted=(dialect.name,)))
        identity = ctx.identity
        self._check_access(identity)
        extensions = tuple(filter(None, (uri.strip() for uri in metadata.get("a2a-extensions", "").split(","))))
        missing = self._required.difference(extensions)
        if missing:
            raise FailureError(ExtensionSupportRequired(accepted=tuple(sorted(missing))))
        scope = "" if identity is None else identity.subject
        return Caller(scope, dialect.name, identity, extensions, metadata)

    def _check_access(self, identity: Identity | None) -> None:
        """What the agent's card says of who may call it, for callers who show who they are by the daemon's own means."""
        if identity is None:
            if self._guarded:
                raise self.challenge()
        elif identity.scopes is not None and self._alternatives:
            held = identity.scopes
            if not any(held.issuperset(scopes_of(each)) for each in self._alternatives):
                raise FailureError(InsufficientPermissions())

    def challenge(self) -> FailureError:
        """What a caller is told who has to show who it is."""
        login = self._login
        return FailureError(AuthenticationRequired(tuple(login.schemes), login.realm) if login else Internal())

    @asynccontextmanager
    async def _between(self, ctx: Context, caller: Caller, task_id: str | None) -> AsyncIterator[None]:
        """Past the interceptors, and back past those that were passed."""
        call = AgentCall(ctx.operation, caller.dialect, caller.identity, caller.service_params, task_id)
        passed: list[Interceptor] = []
        outcome: Outcome = None
        try:
            for interceptor in self._interceptors:
                await _pass(interceptor, call)
                passed.append(interceptor)
            yield
        except FailureError as exc:
            outcome = exc.failure
            raise
        except OperationError as exc:
            outcome = execution.declared(exc) or Internal()
            raise
        except BaseException as exc:
            outcome = Cancelled() if _is_cancellation(exc) else Internal()
            raise
        finally:
            await _return(passed, call, outcome)


def _is_cancellation(exc: BaseException) -> bool:
    import anyio  # late: the first replies leave without an event loop

    return isinstance(exc, (anyio.get_cancelled_exc_class(), GeneratorExit))


async def _pass(interceptor: Interceptor, call: AgentCall) -> None:
    fault = await execution.attempt(lambda: interceptor.before(call))
    if fault is None:
        return
    if isinstance(fault, FailureError):
        raise fault
    failure = execution.declared(fault) if isinstance(fault, OperationError) else None
    if failure is None:
        log.error("interceptor.failed", method=call.method, exc=fault)
    raise FailureError(failure or Internal())


async def _return(passed: Sequence[Interceptor], call: AgentCall, outcome: Outcome) -> None:
    if not passed:
        return
    import anyio  # late: the first replies leave without an event loop

    cancelled = isinstance(outcome, Cancelled)
    deadline = anyio.current_time() + AFTER_SECONDS if cancelled else inf
    with anyio.CancelScope(shield=cancelled, deadline=deadline):
        for interceptor in reversed(passed):
            fault = await execution.attempt(partial(interceptor.after, call, outcome))
            if fault is not None:
                log.error("interceptor.failed", method=call.method, exc=fault)


def _translate(exc: FailureError, dialect: Dialect) -> NoReturn:
    """Raise the failure as this dialect says it."""
    failure = exc.failure
    if not isinstance(failure, AgentFailure):
        raise exc
    state = failure.current_state
    raise FailureError(
        msgspec.structs.replace(
            failure,
            dialect=dialect.name,
            current_state=None if state is None else dialect.state_name(TaskState(state)),
        )
    ) from None


def _is_empty(requirement: SecurityRequirement) -> bool:
    """Whether it says that one may call without credentials."""
    return not requirement.schemes
