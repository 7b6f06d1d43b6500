"""Runs the interceptors of an agent around one call. The only place that calls them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from math import inf
from typing import Final

from ...daemon.dispatch.execution import Raised, attempt
from ...daemon.logs import log
from ...errors.exceptions import FailureError
from ...errors.failures import Cancelled, Internal, TimedOut
from ...lazy import anyio
from ..executor_calls import declared_failure
from ..interceptor import AgentCall, CallResult, Interceptor, Outcome

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
