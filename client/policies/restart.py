"""A line whose server is started anew when it has died: at most so often, and never two of them at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import final

import anyio
import msgspec
from anyio.abc import TaskGroup

from ...errors.backoff import Timing, exponential_backoff
from ..connection.connection import CLOSED, Connection
from ..errors import ConnectionFailed, Loss


class RestartPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How often a server that died is started again.

    At most `limit` restarts in any `within` seconds; when a call would need one more, that is the end. The first one is
    immediate; each further one that is still counted doubles the pause since the last death, from `initial` to at most
    `cap` seconds. A restart that fails counts too. Raises `ValueError` for numbers that make no sense.
    """

    limit: int = 5
    within: float = 60.0
    initial: float = 0.1
    cap: float = 5.0

    def __post_init__(self) -> None:
        if self.limit < 0 or not (self.within > 0 and self.initial >= 0 and self.cap >= 0):
            raise ValueError("limit, initial and cap must be 0 or more, within above 0")


@final
class Restarts:
    """The restarts that still count. `now` is in seconds, of any clock that never goes back."""

    def __init__(self, policy: RestartPolicy) -> None:
        self._policy = policy
        self._counted: deque[float] = deque()

    def pause(self, now: float) -> float | None:
        """Seconds from the last death to the next start; None when there is to be none."""
        while self._counted and self._counted[0] <= now - self._policy.within:
            self._counted.popleft()
        count = len(self._counted)
        if count >= self._policy.limit:
            return None
        return exponential_backoff(self._policy.initial, self._policy.cap, count - 1) if count else 0.0

    def count(self, now: float) -> None:
        """A restart begins."""
        self._counted.append(now)


@final
class _Life:
    """One server from its start to its end."""

    def __init__(self) -> None:
        self.connection: Connection | None = None
        self.begun = anyio.Event()
        self.over = anyio.Event()
        self.loss = CLOSED
        self.ended_at = 0.0

    @property
    def usable(self) -> Connection | None:
        return self.connection if self.connection is not None and self.connection.usable else None


@final
class RestartingConnector:
    """`begin` starts a server and connects to it; each life of one is a task in `tasks`.

    Whoever first needs a connection brings the server back, after the old one is gone for good; the others wait. The
    end, once a restart is due that the policy does not allow, is `ConnectionFailed` with `loss.gave_up`, for every call
    from then on, at once.
    """

    def __init__(
        self,
        begin: Callable[[], AbstractAsyncContextManager[Connection]],
        policy: RestartPolicy,
        *,
        tasks: TaskGroup,
        timing: Timing,
    ) -> None:
        self._begin = begin
        self._policy = policy
        self._tasks = tasks
        self._timing = timing
        self._restarts = Restarts(policy)
        self._life: _Life | None = None
        self._end: Loss | None = None
        self._turn = anyio.Lock()

    @property
    def over(self) -> bool:
        return self._end is not None

    async def connection(self) -> Connection:
        """The connection to the server that runs; to a new one, if need be. Raises `ConnectionFailed`."""
        if self._life is not None and (usable := self._life.usable):
            return usable
        self._check()
        async with self._turn:
            if self._life is None or not self._life.usable:
                await self._start()
            assert self._life is not None
            if usable := self._life.usable:
                return usable
            raise ConnectionFailed(self._life.loss, sent=False)

    def close(self) -> None:
        """Start no more."""
        self._end = self._end or CLOSED

    async def _start(self) -> None:
        if self._life is not None:
            await self._prepare_restart(self._life)
        self._check()
        self._life = life = _Life()
        self._tasks.start_soon(self._live, life)
        await life.begun.wait()

    async def _prepare_restart(self, last: _Life) -> None:
        await last.over.wait()
        pause = self._restarts.pause(self._timing.now())
        self._check()
        if pause is None:
            self._end = _gave_up(self._policy, last.loss)
            raise ConnectionFailed(self._end, sent=False)
        await self._timing.sleep(max(0.0, last.ended_at + pause - self._timing.now()))
        self._restarts.count(self._timing.now())

    def _check(self) -> None:
        if self._end is not None:
            raise ConnectionFailed(self._end, sent=False)

    async def _live(self, life: _Life) -> None:
        try:
            async with self._begin() as life.connection:
                life.begun.set()
                life.loss = await life.connection.lost()
        except ConnectionFailed as exc:
            if life.connection is not None:  # a stderr callback's own, which is its author's to see
                raise
            life.loss = exc.loss
        finally:
            life.ended_at = self._timing.now()
            life.begun.set()
            life.over.set()


def _gave_up(policy: RestartPolicy, last: Loss) -> Loss:
    reason = f"gave up after {policy.limit} restarts within {policy.within:g} s: {last.reason}"
    return msgspec.structs.replace(last, reason=reason, gave_up=True)
