"""One session with the store's server, opened again when it is lost, with growing pauses. A short outage is waited for; during
a longer one whoever uses the session is told at once when to try again. Knows no server.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any, Final, Generic, Protocol, TypeVar, final

from ...daemon.logs import log
from ...errors.backoff import exponential_backoff
from ...lazy import anyio
from .interface import StoreError, StoreUnavailableError
from .worker_thread import WorkerThread


class ServerSession(Protocol):
    """A session with a server."""

    @property
    def closed(self) -> bool: ...

    def close(self) -> None: ...

    def shut_down(self) -> None:
        """Have the thread that waits for the server hear that the session is over. Any thread may."""
        ...


S = TypeVar("S", bound=ServerSession)
T = TypeVar("T")

BRIDGED_SECONDS: Final = 5.0
"""How long callers wait for the server from the moment that it is lost: about as long as a restart or a fail-over takes."""

WRITES_PATIENCE: Final = 4.0
"""How many times as long commits wait. What a task has published before that is lost to it; new calls are not let in then."""

FIRST_PAUSE_SECONDS: Final = 0.1
BRIDGED_PAUSE_SECONDS: Final = 0.5
MAX_PAUSE_SECONDS: Final = 5.0
"""Between two attempts to connect: while somebody waits for it, and later."""

MIN_RETRY_MS: Final = 500
"""The least that callers are told to wait."""

CLOSE_SECONDS: Final = 0.4
"""How long closing waits for what is queued, and then for the threads to notice that they wait in vain."""

MAX_LOSSES: Final = 8
"""How many sessions may be lost over one and the same piece of work."""


@final
class ServerLink(Generic[S]):
    """Used by one thread. `reopen()` gives a new session, and raises `StoreError` or one of `errors`, which are also what work
    with a session raises when it is lost. `is_stuck(exc)` tells that the server did not answer; `why(exc)` is one line for
    the operator, without secrets. Work waits for a session `patience` times as long as `BRIDGED_SECONDS`.
    """

    def __init__(
        self,
        label: str,
        session: S,
        reopen: Callable[[], S],
        *,
        errors: type[Exception],
        is_stuck: Callable[[Exception], bool],
        why: Callable[[Exception], str],
        patience: float = 1.0,
    ) -> None:
        self._label = label
        self._session: S | None = session
        self._reopen = reopen
        self._errors = errors
        self._is_stuck = is_stuck
        self._why = why
        self._patience = patience
        self._reason = ""
        self._closing = threading.Event()
        self._lost_at = 0.0
        self._reopened_at = -math.inf
        self.reached_at = monotonic()
        """When that was asked to which the server has answered last. Any thread may read it."""
        self._failures = 0
        self._next_try = 0.0
        self._busy = False
        self._told = False

    @property
    def away(self) -> bool:
        """Whether there is no session."""
        return self._session is None

    @property
    def seconds_since_reopened(self) -> float:
        """How long the present session has been there, if one was lost before. Any thread may ask."""
        return monotonic() - self._reopened_at

    def check(self) -> None:
        """Raises `StoreUnavailableError` where the server has been away for longer than `BRIDGED_SECONDS`. Any thread may ask."""
        if self._session is None and monotonic() > self._lost_at + BRIDGED_SECONDS:
            raise StoreUnavailableError(f"{self._label} {self._away}", retry_after_ms=self._retry_ms, repeated=True)

    @property
    def session(self) -> S | None:
        """The present one. Any thread may ask."""
        return self._session

    @property
    def seconds_to_next_try(self) -> float:
        return max(self._next_try - monotonic(), 0.0)

    def run(self, work: Callable[[S], T]) -> T:
        """What `work(session)` returns. It is called again, with another session, where one was lost.

        Raises `StoreUnavailableError`, and what it raises for other reasons.
        """
        losses = 0
        while True:
            session = self._open()
            self._busy = True
            asked_at = monotonic()
            try:
                result = work(session)
                self.reached_at = asked_at
                return result
            except self._errors as exc:
                if not session.closed:
                    raise
                self._lose()
                losses += 1
                if self._is_stuck(exc) or losses == MAX_LOSSES:  # what has ended that many would end the next one, too
                    raise self._unavailable() from None
                if losses > 1:  # the server is there, and not ready: a cluster that is about to change
                    self._closing.wait(exponential_backoff(FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS, losses - 2))
            finally:
                self._busy = False

    def _lose(self) -> None:
        self._session = None
        self._lost_at = monotonic()
        self._failures = 0
        self._next_try = 0.0
        self._told = False
        self._reason = ""

    def _open(self) -> S:
        while self._session is None:
            end = self._lost_at + BRIDGED_SECONDS * self._patience
            self._closing.wait(min(self.seconds_to_next_try, max(end - monotonic(), 0.0)))
            if self._closing.is_set() or monotonic() < self._next_try:
                raise self._unavailable()
            try:
                self._session = self._reopen()
            except (self._errors, StoreError) as exc:
                self._reason = self._why(exc)
                longest = BRIDGED_PAUSE_SECONDS if monotonic() < end else MAX_PAUSE_SECONDS
                self._next_try = monotonic() + exponential_backoff(FIRST_PAUSE_SECONDS, longest, self._failures)
                self._failures += 1
                if monotonic() > end:
                    raise self._unavailable() from None
            else:
                self._reopened_at = monotonic()
                log.warning("store.reconnected", seconds=round(monotonic() - self._lost_at, 3))
        return self._session

    def _unavailable(self) -> StoreUnavailableError:
        repeated, self._told = self._told, True
        return StoreUnavailableError(f"{self._label} {self._away}", retry_after_ms=self._retry_ms, repeated=repeated)

    @property
    def _away(self) -> str:
        return f"can't be reached: {self._reason}" if self._reason else "does not answer"

    @property
    def _retry_ms(self) -> int:
        return max(int(self.seconds_to_next_try * 1000), MIN_RETRY_MS)

    def stop(self, *, at_once: bool = False) -> None:
        """Wait for no server any more; with `at_once` not even for the answer to what it was asked. Any thread may."""
        self._closing.set()
        session = self._session
        if at_once and self._busy and session is not None:
            session.shut_down()

    def close(self) -> None:
        if self._session is not None:
            self._session.close()


class Stop(Protocol):
    """Stops the links that threads use; see `ServerLink.stop`."""

    def __call__(self, *, at_once: bool = False) -> None: ...


async def close_threads(stop: Stop, *threads: WorkerThread[Any]) -> None:  # Any: what they run
    """Finish what is queued, as long as the server answers in time, and end the threads. Within twice `CLOSE_SECONDS`."""
    stop()
    if not await _close_in_time(threads):
        stop(at_once=True)
        await _close_in_time(threads)


async def _close_in_time(threads: Sequence[WorkerThread[Any]]) -> bool:  # Any: as above
    with anyio.move_on_after(CLOSE_SECONDS):
        for thread in threads:
            await thread.close()
        return True
    return False
