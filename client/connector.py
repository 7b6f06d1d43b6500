"""Gives a peer its connection: always the same one, or one to a server that is started again after it died.

A server is started again at most as often as its policy says, and never two at once. `OwnLoop` keeps other event loops off.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Generic, Protocol, TypeAlias, TypeVar, final

import anyio
import msgspec
from anyio.abc import TaskGroup
from anyio.lowlevel import current_token

from ..errors.backoff import SYSTEM_TIMING, Timing, exponential_backoff
from .connection import CLOSED
from .errors import ConnectionFailed, ConnectionLoss
from .messages import OutgoingRequest
from .pending import PendingRequest
from .task_group import background_tasks
from .validation import check_count, check_seconds


class ClientConnection(Protocol):
    """Carries the requests of a peer: `Connection` over a byte transport, `client.http` by HTTP."""

    @property
    def checks_subscriptions(self) -> bool:
        """Whether a subscription first goes through `services/subscribe`."""
        ...

    @property
    def usable(self) -> bool:
        """Whether requests can be sent, as far as is known."""
        ...

    async def start(self, request: PendingRequest, message: OutgoingRequest) -> None:
        """Send a request that somebody will wait for. `request` takes the answer.

        Raises `ConnectionFailed`; then nothing was sent. Raises `ValueError` for what this connection can't carry.
        """
        ...

    def forget(self, request: PendingRequest) -> bool:
        """Stop waiting for a request, and have the server cancel it if it has not answered. Never waits.

        Returns whether the request may have left this process.
        """
        ...

    async def send(self, body: bytes) -> None:
        """Send a message that has no answer. Raises `ConnectionFailed`."""
        ...

    async def send_raw(self, data: bytes) -> None:
        """Send bytes that need not be a message. Raises `ConnectionFailed`."""
        ...


class Connector(Protocol):
    """Gives the connection that a call should use now."""

    @property
    def closed(self) -> bool:
        """No later call can succeed."""
        ...

    async def connection(self) -> ClientConnection:
        """A connection that was usable a moment ago. Raises `ConnectionFailed`; then nothing was sent."""
        ...


@final
class FixedConnector:
    """Always gives the same connection, even after its end: then using it raises `ConnectionFailed`."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection

    @property
    def closed(self) -> bool:
        return not self._connection.usable

    async def connection(self) -> ClientConnection:
        return self._connection


@final
class OwnLoop:
    """A connector for the event loop that made it. A task that waited in another loop would never be woken."""

    def __init__(self, connector: Connector) -> None:
        self._connector = connector
        self._loop = current_token().native_token

    @property
    def closed(self) -> bool:
        return self._connector.closed

    async def connection(self) -> ClientConnection:
        """Return a connection as `Connector` does. Raises `RuntimeError` in another event loop, unless the connection is closed
        anyway."""
        self.require()
        return await self._connector.connection()

    def require(self) -> None:
        """Raise `RuntimeError` in another event loop, unless the connection is closed anyway."""
        if current_token().native_token is not self._loop and not self.closed:
            raise RuntimeError(
                "this peer belongs to another event loop: use it there, or connect with discreet.client.blocking,"
                " whose peer any thread may use"
            )


class ServerConnection(Protocol):
    """A connection to one server, as far as it matters for starting the next one."""

    @property
    def usable(self) -> bool:
        """Whether the server still takes messages, as far as is known."""
        ...

    async def wait_lost(self) -> ConnectionLoss:
        """Wait for the connection's end and return its cause."""
        ...


C = TypeVar("C", bound=ServerConnection)

StartServer: TypeAlias = Callable[[], AbstractAsyncContextManager[C]]
"""Starts a server and connects to it. Raises `ConnectionFailed`. Leaving ends the server."""


class RestartPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How often a server that died is started again.

    At most `limit` restarts happen within any `within` seconds. A call that would need one more fails, and so does every later
    call. The first restart is immediate. Each further one within that time doubles the delay since the last death, from
    `initial` to at most `cap` seconds. A restart that fails counts too. Raises `ValueError` for numbers out of range.
    """

    limit: int = 5
    within: float = 60.0
    initial: float = 0.1
    cap: float = 5.0

    def __post_init__(self) -> None:
        check_count("limit", self.limit, 0)
        for name in ("within", "initial", "cap"):
            check_seconds(name, getattr(self, name))
        if not self.within:
            raise ValueError("within must be above 0")


@asynccontextmanager
async def restarting(
    start_server: StartServer[C], policy: RestartPolicy, *, at_once: bool = True, timing: Timing = SYSTEM_TIMING
) -> AsyncGenerator[RestartingConnector[C]]:
    """A connector to a server that is started now and, after its death, by the next call. Leaving ends the server.

    Without `at_once` the first call starts it. Raises `ConnectionFailed` when the first start fails.
    """
    async with background_tasks() as tasks:
        connector = RestartingConnector(start_server, policy, tasks=tasks, timing=timing)
        try:
            if at_once:
                await connector.connection()
            yield connector
        finally:
            connector.close()


@final
class RestartHistory:
    """The restarts that still count. `now` is in seconds of any monotonic clock."""

    def __init__(self, policy: RestartPolicy) -> None:
        self._policy = policy
        self._restarts: deque[float] = deque()

    def delay(self, now: float) -> float | None:
        """Seconds from the last death to the next start; None when the policy allows no restart."""
        while self._restarts and self._restarts[0] <= now - self._policy.within:
            self._restarts.popleft()
        count = len(self._restarts)
        if count >= self._policy.limit:
            return None
        return exponential_backoff(self._policy.initial, self._policy.cap, count - 1) if count else 0.0

    def add(self, now: float) -> None:
        """Count a restart that begins now."""
        self._restarts.append(now)


@final
class _ServerRun(Generic[C]):
    """One server from its start to its end."""

    def __init__(self) -> None:
        self.connection: C | None = None
        self.started = anyio.Event()
        self.ended = anyio.Event()
        self.loss = CLOSED
        self.ended_at = 0.0


@final
class RestartingConnector(Generic[C]):
    """Runs each server in a task of its own, in `tasks`.

    The first call that needs a connection restarts the server, once the old process is gone; other calls wait for it.
    When the policy allows no further restart, every call raises `ConnectionFailed` with `loss.gave_up`, at once.
    """

    def __init__(
        self, start_server: StartServer[C], policy: RestartPolicy, *, tasks: TaskGroup, timing: Timing
    ) -> None:
        self._start_server = start_server
        self._policy = policy
        self._tasks = tasks
        self._timing = timing
        self._history = RestartHistory(policy)
        self._run: _ServerRun[C] | None = None
        self._final_loss: ConnectionLoss | None = None
        self._start_lock = anyio.Lock()

    @property
    def closed(self) -> bool:
        return self._final_loss is not None

    async def connection(self) -> C:
        """The connection to the running server. Starts a server if none runs. Raises `ConnectionFailed`."""
        if usable := self._usable:
            return usable
        self._check_open()
        async with self._start_lock:
            if self._usable is None:
                await self._start()
            if usable := self._usable:
                return usable
            assert self._run is not None, "it was just started"
            raise ConnectionFailed(self._run.loss, sent=False)

    def close(self) -> None:
        """Start no further server."""
        self._final_loss = self._final_loss or CLOSED

    @property
    def _usable(self) -> C | None:
        connection = None if self._run is None else self._run.connection
        return connection if connection is not None and connection.usable else None

    async def _start(self) -> None:
        if self._run is not None:
            await self._prepare_restart(self._run)
        self._check_open()
        self._run = run = _ServerRun[C]()
        self._tasks.start_soon(self._run_server, run)
        await run.started.wait()

    async def _prepare_restart(self, last: _ServerRun[C]) -> None:
        await last.ended.wait()
        delay = self._history.delay(self._timing.now())
        self._check_open()
        if delay is None:
            reason = f"gave up after {self._policy.limit} restarts within {self._policy.within:g} s: {last.loss.reason}"
            self._final_loss = msgspec.structs.replace(last.loss, reason=reason, gave_up=True)
            raise ConnectionFailed(self._final_loss, sent=False)
        await self._timing.sleep(max(0.0, last.ended_at + delay - self._timing.now()))
        self._history.add(self._timing.now())

    def _check_open(self) -> None:
        if self._final_loss is not None:
            raise ConnectionFailed(self._final_loss, sent=False)

    async def _run_server(self, run: _ServerRun[C]) -> None:
        try:
            async with self._start_server() as run.connection:
                run.started.set()
                run.loss = await run.connection.wait_lost()
        except ConnectionFailed as exc:
            if run.connection is not None:  # raised by a stderr callback, whose author should see it
                raise
            run.loss = exc.loss
        finally:
            run.ended_at = self._timing.now()
            run.started.set()
            run.ended.set()
