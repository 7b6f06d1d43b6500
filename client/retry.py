"""Decides when a call is made again: which failures allow it, after what delay, how often. Sends nothing itself.

The back-off is exponential with full jitter. After the n-th failure the delay is a random time between 0 and
`initial` × 2ⁿ⁻¹, at most `cap`, so that clients that failed together do not all return together. The delay is never shorter
than the server's `retryAfterMs`, or its `Retry-After` by HTTP.

An error says itself whether it is retryable: a declared error by its flag, the others by the table of `discreet.errors`; a
lost connection and a missing answer are. If the first call may have had an effect, it is repeated only if repeating does no
harm; see `outcome_is_unknown`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Protocol, TypeAlias, TypeVar, final

import anyio
import msgspec

from ..errors.backoff import SYSTEM_TIMING, Timing, exponential_backoff
from ..errors.failures import DomainFailure
from .errors import (
    ClientError,
    ConnectionFailed,
    MethodNotFound,
    OperationFailed,
    OperationTimedOut,
    Overloaded,
    RemoteError,
    RequestTimeout,
    Unavailable,
)
from .validation import check_count, check_plain_function, check_seconds

T = TypeVar("T")

MAX_RETRY_AFTER_MS: Final = 10**12
"""About thirty years. A larger `retryAfterMs` is cut to this, so that it can be converted to seconds."""


class Attempt(msgspec.Struct, frozen=True):
    """The result of one attempt.

    `number` counts from 1. `error` is None when the attempt succeeded. `elapsed` is in seconds since the call began. `delay`
    is in seconds until the next attempt; None when there is none.
    """

    method: str
    number: int
    error: ClientError | None
    elapsed: float
    delay: float | None


class AttemptHook(Protocol):
    """Observes the attempts of calls, to log or to count them."""

    def on_attempt(self, attempt: Attempt, /) -> object:
        """Take the result of an attempt. Called after every attempt; must return at once. An exception ends the call."""
        ...


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How often and when a failed call is made again.

    `attempts` includes the first one. `initial` and `cap` are seconds of back-off. `deadline` is in seconds for the call with
    all its attempts and delays, None for no limit. An attempt that could not begin before the deadline is not made; one that
    runs then is cut off. Every attempt is reported to the `hooks`. Raises `TypeError` for a wrong hook, and `ValueError` for
    numbers out of range.
    """

    attempts: int = 3
    initial: float = 0.1
    cap: float = 5.0
    deadline: float | None = 60.0
    hooks: tuple[AttemptHook, ...] = ()

    def __post_init__(self) -> None:
        check_count("attempts", self.attempts, 1)
        check_seconds("initial", self.initial)
        check_seconds("cap", self.cap)
        if self.deadline is not None:
            check_seconds("deadline", self.deadline)
        if self.deadline == 0:
            raise ValueError("deadline must be above 0, or None")
        if not isinstance(self.hooks, tuple | list):
            raise TypeError("hooks must be a tuple of objects with a method on_attempt")
        for hook in self.hooks:
            check_plain_function("on_attempt of hooks", getattr(hook, "on_attempt", None))

    def max_backoff(self, failures: int) -> float:
        """Return the longest back-off after so many failures, in seconds."""
        return exponential_backoff(self.initial, self.cap, failures - 1)

    def seconds_left(self, elapsed: float) -> float | None:
        """Return the seconds until the deadline; None without one."""
        return None if self.deadline is None else max(0.0, self.deadline - elapsed)


def outcome_is_unknown(error: ClientError) -> bool:
    """Tell whether the operation may have had an effect, or may still have one, although the call raised this error.

    TIMEOUT means that the operation was stopped while it ran. UNAVAILABLE is also the daemon's answer for operations that
    still ran when its drain window closed. After a declared error the operation's own flag decides; OVERLOADED means that the
    operation never ran.
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
    attempt: Callable[[float | None], Awaitable[T]],
    may_retry: Callable[[ClientError], Awaitable[bool]],
    *,
    timing: Timing,
) -> T:
    """Return the result of the first attempt that succeeds. Raises the last attempt's error. Can be cancelled at any point.

    `attempt` makes one attempt within the given seconds, None for no limit. `may_retry` says whether another attempt may
    follow an error.
    """
    began = timing.now()
    number = 0
    while True:
        number += 1
        try:
            result = await attempt(policy.seconds_left(timing.now() - began))
        except ClientError as error:
            elapsed = timing.now() - began
            retry = number < policy.attempts and await may_retry(error)
            delay = _delay(policy, number, error, timing.now() - began, timing.jitter()) if retry else None
            _call_hooks(policy, Attempt(method, number, error, elapsed, delay))
            if delay is None:
                raise
        else:
            _call_hooks(policy, Attempt(method, number, None, timing.now() - began, None))
            return result
        await timing.sleep(delay)


def _delay(policy: RetryPolicy, failures: int, error: ClientError, elapsed: float, jitter: float) -> float | None:
    """Seconds until the next attempt; None when it could not begin before the deadline."""
    delay = max(retry_after(error), jitter * policy.max_backoff(failures))
    left = policy.seconds_left(elapsed)
    return delay if left is None or delay < left else None


def retry_after(error: ClientError) -> float:
    """Seconds that the server asks to wait before another attempt; 0 where it does not."""
    match error:
        case Overloaded(failure=failure) | Unavailable(failure=failure) if failure.retry_after_ms is not None:
            return min(failure.retry_after_ms, MAX_RETRY_AFTER_MS) / 1000
        case OperationFailed(failure=DomainFailure(retry_after_ms=int(asked))):
            return min(max(asked, 0), MAX_RETRY_AFTER_MS) / 1000
        case RemoteError(retry_after=float(seconds)):
            return min(seconds, MAX_RETRY_AFTER_MS / 1000)
        case _:
            return 0.0


def _call_hooks(policy: RetryPolicy, attempt: Attempt) -> None:
    for hook in policy.hooks:
        hook.on_attempt(attempt)


class ListedOperation(msgspec.Struct, frozen=True):
    """The members of an entry of `services/list` that a client uses."""

    name: str
    kind: str


ListOperations: TypeAlias = Callable[[Mapping[str, str] | None], Awaitable[list[ListedOperation]]]
"""Calls `services/list` with these service params."""


IsQuery: TypeAlias = Callable[[str, Mapping[str, str] | None], Awaitable[bool]]
"""Whether a method is a query for a caller with these service params, and so may be repeated. Raises no `ClientError`."""


@final
class OperationKinds:
    """The kinds of a server's operations, which is asked when they first matter. One that it does not list is a mutation."""

    def __init__(self, list_operations: ListOperations) -> None:
        self._list_operations = list_operations
        self._kinds: dict[str, str] = {}
        self._has_listing = True
        self._lock = anyio.Lock()

    async def is_query(self, method: str, service_params: Mapping[str, str] | None) -> bool:
        """Whether the server lists the method as a query."""
        name = method.removeprefix("/")
        async with self._lock:
            if name not in self._kinds and self._has_listing:
                await self._load(service_params)
        return self._kinds.get(name) == "query"

    async def _load(self, service_params: Mapping[str, str] | None) -> None:
        try:
            listed = await self._list_operations(service_params)
        except MethodNotFound:
            self._has_listing = False
        except ClientError:
            return  # the next caller asks again
        else:
            self._kinds.update({operation.name: operation.kind for operation in listed})


MAX_RECONNECTIONS: Final = 8
"""Attempts in a row without an event. With the pauses between them about half a minute: time for a restart."""

RECONNECT_INITIAL: Final = 0.2
RECONNECT_CAP: Final = 8.0
"""Seconds before the second attempt, and at most."""

MAX_ASKED_SECONDS: Final = 60.0
"""How long a server may ask to wait."""


@final
class Reconnection:
    """The attempts to go on with one stream.

    Only the first one is immediate, whatever comes in between: a server that cuts off each stream behind one event must not be
    asked without end. Later pauses are random, so that clients that lost a server together do not return together.
    """

    def __init__(self, timing: Timing = SYSTEM_TIMING) -> None:
        self._timing = timing
        self._failures = 0
        self._began = False

    def progressed(self) -> None:
        """An event came: later attempts are counted anew."""
        self._failures = 0

    def may_go_on(self) -> bool:
        """Count a failure. Returns whether another attempt is due."""
        self._failures += 1
        return self._failures <= MAX_RECONNECTIONS

    async def pause(self, asked: float | None = None) -> None:
        """Wait before the next attempt, at least as long as the server asks."""
        backoff = (
            exponential_backoff(RECONNECT_INITIAL, RECONNECT_CAP, max(self._failures - 2, 0)) if self._began else 0.0
        )
        self._began = True
        seconds = backoff * (1 + self._timing.jitter()) / 2
        await self._timing.sleep(max(seconds, min(asked or 0.0, MAX_ASKED_SECONDS)))
