"""When a call is made again: what may be repeated, after how long, how often. Sends nothing itself.

The back-off is exponential with full jitter: after the n-th failure a time between 0 and `initial` × 2ⁿ⁻¹, at most `cap`,
any of it equally likely, so that many clients that failed together do not come back together. A server that says when to
come again (`retryAfterMs`) is not asked earlier.

What is retryable is the error's word: the flag of a declared error, the table of `discreet.errors` for the rest, and for a
connection or an answer that did not come, yes. What is not known to have had no effect is repeated only when repeating
does no harm; see `outcome_is_unknown`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, Protocol, TypeVar

import msgspec

from ...errors.backoff import Timing, exponential_backoff
from ..errors import ClientError, ConnectionFailed, OperationTimedOut, Overloaded, RequestTimeout, Unavailable

T = TypeVar("T")

LONGEST_FLOOR_MS: Final = 10**12
"""Some thirty years. A server may send any number; past this one it is none."""


class Attempt(msgspec.Struct, frozen=True):
    """What is known right after an attempt.

    `number` counts from 1, `error` is None when it succeeded, `elapsed` are the seconds since the call began, `delay` the
    seconds until the next attempt, None when there is none.
    """

    method: str
    number: int
    error: ClientError | None
    elapsed: float
    delay: float | None


class AttemptHook(Protocol):
    """Sees every attempt, to log or to count. It must return at once; what it raises ends the call."""

    def on_attempt(self, attempt: Attempt, /) -> object: ...


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How often and when a call that failed is made again.

    `attempts` counts the first one. `initial` and `cap` are seconds of back-off. `deadline` is how many seconds the call
    may take with all its attempts and delays, None for no limit: an attempt that could not begin in time is not made, and
    one that does begin is cut there. Raises `ValueError` for numbers that make no sense.
    """

    attempts: int = 3
    initial: float = 0.1
    cap: float = 5.0
    deadline: float | None = 60.0
    hooks: tuple[AttemptHook, ...] = ()

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise ValueError("attempts must be 1 or more")
        if not (self.initial >= 0 and self.cap >= 0 and (self.deadline is None or self.deadline > 0)):
            raise ValueError("initial and cap must be 0 or more, deadline above 0")

    def ceiling(self, failures: int) -> float:
        """The longest back-off after so many failures, in seconds."""
        return exponential_backoff(self.initial, self.cap, failures - 1)

    def left(self, elapsed: float) -> float | None:
        """Seconds until the deadline; None without one."""
        return None if self.deadline is None else max(0.0, self.deadline - elapsed)


def outcome_is_unknown(error: ClientError) -> bool:
    """Whether the operation may have had an effect, or may have one yet, although this error came.

    TIMEOUT says that the operation was stopped somewhere on its way, and UNAVAILABLE is also what the daemon answers for
    what still ran when its drain window closed. A declared error is its operation's own word, OVERLOADED a refusal.
    """
    match error:
        case ConnectionFailed(sent=sent) | RequestTimeout(sent=sent):
            return sent
        case OperationTimedOut() | Unavailable():
            return True
        case _:
            return False


async def call_with_retries(
    policy: RetryPolicy,
    method: str,
    once: Callable[[float | None], Awaitable[T]],
    again: Callable[[ClientError], Awaitable[bool]],
    *,
    timing: Timing,
) -> T:
    """The result of the first attempt that succeeds. Raises the last one's error.

    `once` is one attempt, given the seconds that are left, None for no limit. `again` says whether an error may be
    followed by another attempt. Cancellation ends it wherever it is.
    """
    began = timing.now()
    number = 0
    while True:
        number += 1
        try:
            result = await once(policy.left(timing.now() - began))
        except ClientError as error:
            elapsed = timing.now() - began
            may = number < policy.attempts and await again(error)
            delay = _delay(policy, number, error, timing.now() - began, timing.jitter()) if may else None
            _tell(policy, Attempt(method, number, error, elapsed, delay))
            if delay is None:
                raise
        else:
            _tell(policy, Attempt(method, number, None, timing.now() - began, None))
            return result
        await timing.sleep(delay)


def _delay(policy: RetryPolicy, failures: int, error: ClientError, elapsed: float, jitter: float) -> float | None:
    """Seconds until the next attempt; None when it could not begin before the deadline."""
    delay = max(_floor(error), jitter * policy.ceiling(failures))
    left = policy.left(elapsed)
    return delay if left is None or delay < left else None


def _floor(error: ClientError) -> float:
    match error:
        case Overloaded(failure=failure) if failure.retry_after_ms is not None:
            return min(failure.retry_after_ms, LONGEST_FLOOR_MS) / 1000
        case _:
            return 0.0


def _tell(policy: RetryPolicy, attempt: Attempt) -> None:
    for hook in policy.hooks:
        hook.on_attempt(attempt)
