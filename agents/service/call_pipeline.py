"""What every call of an agent's methods passes: admission, interceptors, the store; and how its errors are written.

Knows no method. A failure of A2A leaves it in the version of the call. The only place that calls interceptors.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from math import inf
from typing import Final, Protocol, TypeVar, final

from ...a2a.card.model import Extension, required_scopes
from ...a2a.errors import InvalidStateTransition
from ...a2a.types import TaskState
from ...a2a.versions.version import ProtocolVersion, failure_in
from ...daemon.dispatch.execution import Raised, attempt
from ...daemon.logs import log
from ...daemon.operations.access import Access, AccessRule, challenge
from ...daemon.operations.context import Context
from ...errors.exceptions import FailureError
from ...errors.failures import (
    Cancelled,
    ExtensionSupportRequired,
    Failure,
    InsufficientPermissions,
    Internal,
    TimedOut,
    Unavailable,
    UnsupportedOperation,
    VersionNotSupported,
)
from ...lazy import anyio
from ..agent import Agent
from ..interceptor import AgentCall, CallResult, Interceptor, Outcome
from ..stores.failures import log_failure
from ..stores.interface import StoreError, StoreUnavailableError
from ..tasks.runner import declared_failure
from .request_handler import Caller, RequestHandler

AFTER_CANCEL_SECONDS: Final = 1.0
"""How long the `after` methods together may take when the call was cancelled."""


@asynccontextmanager
async def intercepted(
    interceptors: Sequence[Interceptor], call: AgentCall, results: Sequence[object], *, timeout: float | None
) -> AsyncIterator[None]:
    """The block is the call: `before` runs on entry and `after`, for those that let the call pass, on exit. The last of `results`
    is what it came to; there may be none.

    The `before` methods together have `timeout` seconds, and so have the `after` methods. Raises `FailureError` where an
    interceptor refuses the call, `FailureError(TimedOut)` where they take too long; else what the block raises.
    """
    limit = inf if timeout is None else timeout
    passed: list[Interceptor] = []
    outcome: Outcome = Internal()
    try:
        await _all_before(interceptors, call, passed, limit)
        yield
        outcome = CallResult(results[-1] if results else None)
    except BaseException as exc:
        outcome = Cancelled() if _is_cancellation(exc) else declared_failure(exc) or Internal()
        raise
    finally:
        await _after(passed, call, outcome, limit)


def _is_cancellation(exc: BaseException) -> bool:
    return isinstance(exc, (anyio.get_cancelled_exc_class(), GeneratorExit))


async def _all_before(
    interceptors: Sequence[Interceptor], call: AgentCall, passed: list[Interceptor], limit: float
) -> None:
    """Run `before` of all of them, and add to `passed` those that let the call pass."""
    with anyio.move_on_after(limit) as scope:
        for interceptor in interceptors:
            await _before(interceptor, call)
            passed.append(interceptor)
    if scope.cancelled_caught:
        _log_timeout(interceptors[len(passed)], call)
        raise FailureError(TimedOut())


def _log_timeout(interceptor: Interceptor, call: AgentCall) -> None:
    log.error("interceptor.timed_out", method=call.method, interceptor=type(interceptor).__name__)


async def _before(interceptor: Interceptor, call: AgentCall) -> None:
    done = await attempt(lambda: interceptor.before(call), step="interceptor.before")
    if not isinstance(done, Raised):
        return
    failure = declared_failure(done.exc)
    if failure is None:
        log.error("interceptor.failed", method=call.method, exc=done.exc)
    raise FailureError(failure or Internal())


async def _after(passed: Sequence[Interceptor], call: AgentCall, outcome: Outcome, limit: float) -> None:
    if not passed:
        return

    cancelled = isinstance(outcome, Cancelled)
    deadline = anyio.current_time() + (AFTER_CANCEL_SECONDS if cancelled else limit)
    interceptor = passed[-1]
    with anyio.CancelScope(shield=cancelled, deadline=deadline) as scope:
        for interceptor in reversed(passed):
            done = await attempt(partial(interceptor.after, call, outcome), step="interceptor.after")
            if isinstance(done, Raised):
                log.error("interceptor.failed", method=call.method, exc=done.exc)
    if scope.cancelled_caught:
        _log_timeout(interceptor, call)


# Who calls the agent, and whether it may: the version that it asks for, its identity, the extensions that it names.


_VERSION_SUGGESTIONS: Final[Mapping[str, str]] = {
    "1.0": "Send A2A-Version: 1.0. By HTTP a request without that header is one of 0.3.",
    "0.3": "Send A2A-Version: 0.3, or none.",
}


@final
class Admission:
    """One per daemon. `rule` is that of the agent's methods: one of its security requirements with all its scopes is enough.
    `extensions` are those of the agent. The daemon's identity provider has made identities of credentials before.
    """

    def __init__(self, agent: Agent | None, access: Access, extensions: Sequence[Extension]) -> None:
        self._provider = access.provider
        requirements = () if agent is None else agent.card.security_requirements
        self.rule: Final = AccessRule(
            public=any(not requirement.schemes for requirement in requirements),
            known=agent is not None,
            alternatives=tuple(map(required_scopes, requirements)),
        )
        self._required = frozenset(each.uri for each in extensions if each.required)

    def caller(self, ctx: Context, version: ProtocolVersion) -> Caller:
        """Who makes this call of a method of `version`. Raises `FailureError` where it is refused."""
        params, identity, rule = ctx.service_params, ctx.identity, self.rule
        if identity is None and not rule.public and rule.known and self._provider is not None:
            raise FailureError(challenge(self._provider))
        if identity is not None and not (rule.public or rule.allows(identity)):
            raise FailureError(InsufficientPermissions())
        refusal = self.refusal(version, params) if params or self._required else None
        if refusal is not None:
            raise FailureError(refusal)
        scope = "" if identity is None else identity.subject
        return Caller(scope, version.name, identity, _extensions(params) if params else (), params)

    def refusal(self, version: ProtocolVersion, params: Mapping[str, str]) -> Failure | None:
        """Why a call of a method of `version` with these service parameters is refused, whoever makes it."""
        wanted = params.get("a2a-version")
        if wanted and wanted.strip() and not version.covers(wanted.strip()):
            suggestion = _VERSION_SUGGESTIONS[version.name]
            return VersionNotSupported(version=version.name, accepted=(version.name,), suggestion=suggestion)
        missing = self._required.difference(_extensions(params)) if self._required else ()
        return ExtensionSupportRequired(version=version.name, accepted=tuple(sorted(missing))) if missing else None


def _extensions(params: Mapping[str, str]) -> tuple[str, ...]:
    named = params.get("a2a-extensions")
    return tuple(filter(None, (uri.strip() for uri in named.split(",")))) if named else ()


_POLL: Final = "Send the message without streaming, and poll its task with GetTask."
T = TypeVar("T")


class Settle(Protocol):
    """Notes the result of a call for its interceptors, and returns it."""

    def __call__(self, result: T, /) -> T: ...


def _ignore(result: T, /) -> T:
    return result


@final
class CallPipeline:
    """One per daemon. `ready()` is the request handler, once the store is open. `streaming` says whether the agent streams."""

    def __init__(
        self,
        ready: Callable[[], Awaitable[RequestHandler]],
        admission: Admission,
        *,
        streaming: bool,
        interceptors: Sequence[Interceptor],
        request_timeout: float | None,
    ) -> None:
        self._ready = ready
        self._admission = admission
        self._streaming = streaming
        self._interceptors = interceptors
        self._request_timeout = request_timeout

    @asynccontextmanager
    async def call(
        self,
        ctx: Context,
        version: ProtocolVersion,
        params: object,
        *,
        task_id: str | None = None,
        streaming: bool = False,
    ) -> AsyncIterator[tuple[RequestHandler, Caller, Settle]]:
        """The block is the call: it gets the request handler, the caller, and what it tells its result.

        Raises `FailureError` where the call is refused, or the store fails. The `FailureError` of the block is raised as this
        version writes it, its other exceptions as they are.
        """
        try:
            caller = self._admission.caller(ctx, version)
            if streaming and not self._streaming:
                raise FailureError(UnsupportedOperation(reason="The agent does not stream.", suggestion=_POLL))
            handler = await self._ready()
            if not self._interceptors:
                yield handler, caller, _ignore
                return
            call = AgentCall(ctx.operation, caller.version, caller.identity, caller.service_params, task_id, params)
            results: list[object] = []

            def settled(result: T, /) -> T:
                results.append(result)
                return result

            async with intercepted(self._interceptors, call, results, timeout=self._request_timeout):
                yield handler, caller, settled
        except FailureError as exc:
            raise FailureError(failure_in(version, exc.failure)) from None
        except InvalidStateTransition as exc:
            current, target = (version.states[TaskState(each)] for each in (exc.current, exc.target))
            raise InvalidStateTransition(current=current, target=target) from None
        except StoreUnavailableError as exc:
            log_failure(exc)
            raise FailureError(Unavailable(exc.retry_after_ms)) from None
        except StoreError as exc:
            log_failure(exc)
            raise FailureError(Internal()) from None
