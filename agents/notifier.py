"""Push notifications: queues every event of a task for each of its push targets and delivers them (A2A 1.0 section 4.3).

`PushNotifier.enqueue` only queues, so the path of the events never waits for a delivery. Each target has its own queue and, while
that holds something, one task that delivers from it: the order is kept, and no target waits for another. A notification
that can't be delivered is retried, then dropped. A target with too many failures is given up. Follows no redirect. Never logs
URLs, tokens or credentials.
"""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, TypeAlias, final

import msgspec

from ..a2a.types import PushConfig
from ..client.outbound.network import Destination, Network, SystemNetwork, parse_url
from ..daemon.logs import log
from ..daemon.memory import MemoryBudget
from ..daemon.tracing import HTTP_STATUS
from ..errors.backoff import SYSTEM_TIMING, Timing, exponential_backoff
from ..errors.exceptions import FailureError
from ..errors.failures import InvalidParams
from ..framing.http import retry_after_seconds
from ..lazy import anyio
from ..version import __version__
from .stores.interface import PushTarget

if TYPE_CHECKING:
    from ..client.outbound.connection import ResponseHead
    from ..client.outbound.pool import ConnectionPool
    from ..daemon.tracing import Origin, Tracing


# -- one notification --------------------------------------------------------------------------------------------------

USER_AGENT: Final = f"discreet/{__version__}"

RETRYABLE_STATUSES: Final = frozenset({408, 425, 429})
"""And every 5xx: the request itself was not at fault."""

_REASONS: Final = {
    "connect": "connection",
    "connections": "connection",
    "lost": "connection",
    "connect-timeout": "timeout",
}
"""The words that are logged for those of connections, if they differ."""

_AUTH_SCHEME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}")  # a token, RFC 9110 section 5.6.2
_FIELD_VALUE: Final = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]{0,8190}[\x21-\x7e])?")  # RFC 9110 section 5.5


class DeliveryFailure(msgspec.Struct, frozen=True):
    """Why an attempt failed: the status of the response, or a word. `retry_after` is what `Retry-After` says, in seconds."""

    cause: int | str
    retryable: bool
    retry_after: float = 0.0


class Timeouts(msgspec.Struct, frozen=True):
    """Seconds: to connect (and as many again for TLS), for the request and the head of its response, for one attempt in all."""

    connect: float = 10.0
    read: float = 10.0
    total: float = 30.0


def find_invalid_field(config: PushConfig) -> tuple[str, str] | None:
    """The field of a config that can't be written into a header, and what is expected there; None if all can."""
    if config.token and not _FIELD_VALUE.fullmatch(config.token):
        return "token", "string of visible ASCII"
    authentication = config.authentication
    if authentication is None:
        return None
    if not _AUTH_SCHEME.fullmatch(authentication.scheme):
        return "authentication", "name of an HTTP authentication scheme"
    if authentication.credentials and not _FIELD_VALUE.fullmatch(authentication.credentials):
        return "authentication", "credentials in visible ASCII"
    return None


def request_headers(target: PushTarget) -> list[tuple[str, str]]:
    """The headers of a notification, without `Host`.

    A2A 1.0 sets the media type (section 4.3.3) and `A2A-Version` (section 3.6.1); 0.3 sets neither. The token's header is that
    of 0.3 (`PushNotificationConfig.token`); 1.0 names none, and its SDKs kept it. A scheme without credentials is not sent.
    """
    config = target.config
    is_v03 = target.protocol_version == "0.3"
    headers = [
        ("User-Agent", USER_AGENT),
        ("Content-Type", "application/json" if is_v03 else "application/a2a+json"),
    ]
    if not is_v03:
        headers.append(("A2A-Version", "1.0"))
    if config.token:
        headers.append(("X-A2A-Notification-Token", config.token))
    if config.authentication is not None and config.authentication.credentials:
        headers.append(("Authorization", f"{config.authentication.scheme} {config.authentication.credentials}"))
    return headers


def _failure_of(head: ResponseHead) -> DeliveryFailure | None:
    status = head.status
    if 200 <= status < 300:
        return None
    retryable = status in RETRYABLE_STATUSES or 500 <= status < 600
    said = retry_after_seconds(head.value(b"retry-after")) if retryable else None
    return DeliveryFailure(status, retryable=retryable, retry_after=said or 0.0)


# -- the queue of one target -------------------------------------------------------------------------------------------

MAX_NOTIFICATIONS: Final = 1024
"""Notifications that wait for one target."""

MAX_BYTES: Final = 16 * 1024 * 1024
"""Total size of their bodies. The first of the two limits that is reached applies."""


class Notification(msgspec.Struct, frozen=True):
    """A body to be delivered. `final` marks the task's terminal status. `origin` is the span for which it is."""

    body: bytes
    final: bool
    origin: Origin = None


@final
class DeliveryQueue:
    """The notifications for one target, and the state of their delivery.

    `count(size)` is told of every byte that is held more, or less: those that wait, and the one that was taken last, until it is
    released.
    """

    def __init__(self, target: PushTarget, count: Callable[[int], None] = lambda _: None) -> None:
        self.target = target
        self._count = count
        self.dropped = 0
        """Notifications that overflowed since this was last logged."""
        self.failures = 0
        """Consecutive notifications that could not be delivered."""
        self.given_up = False
        """Too many failures: nothing is delivered until the target changes."""
        self.closed = False
        """The task's final notification has been queued."""
        self.delivery: anyio.TaskHandle[None] | None = None
        """The task that delivers from this queue, while there is one."""
        self.backoff_scope: anyio.CancelScope | None = None
        """Set while that task waits before its next attempt."""
        self._queue: deque[Notification] = deque()
        self.bytes = 0
        """Of the bodies that wait."""
        self._taken = 0

    def __len__(self) -> int:
        return len(self._queue)

    def put(self, notification: Notification) -> None:
        """Add a notification. If the queue overflows, the oldest ones are dropped, but never the final one."""
        self._queue.append(notification)
        self.closed = self.closed or notification.final
        self.bytes += len(notification.body)
        self._count(len(notification.body))
        while (len(self._queue) > MAX_NOTIFICATIONS or self.bytes > MAX_BYTES) and not self._queue[0].final:
            self.drop()

    def drop(self) -> None:
        """Drop the oldest notification, of which there must be one."""
        self._count(-len(self._pop().body))
        self.dropped += 1

    def take(self) -> Notification | None:
        """Remove and return the oldest notification; None if there is none. It replaces the one that was taken before."""
        self.release()
        if not self._queue:
            return None
        notification = self._pop()
        self._taken = len(notification.body)
        return notification

    def release(self) -> None:
        """Stop counting the notification that was taken."""
        self._count(-self._taken)
        self._taken = 0

    def clear(self) -> int:
        """Drop every notification that waits. Returns how many there were."""
        count = len(self._queue)
        self._queue.clear()
        self._count(-self.bytes)
        self.bytes = 0
        return count

    def _pop(self) -> Notification:
        notification = self._queue.popleft()
        self.bytes -= len(notification.body)
        return notification

    def replace_target(self, target: PushTarget) -> None:
        """Deliver to this target from now on. Failures of the previous one do not count any more."""
        self.target = target
        self.failures = 0
        self.given_up = False


# -- all targets -------------------------------------------------------------------------------------------------------

MAX_ATTEMPTS: Final = 5
"""For one notification, the first attempt included."""

INITIAL_BACKOFF_SECONDS: Final = 0.5
MAX_BACKOFF_SECONDS: Final = 30.0
"""Back-off with full jitter after the n-th failure: up to `INITIAL_BACKOFF_SECONDS` × 2ⁿ⁻¹, at most the maximum, which also
limits a `Retry-After`."""

RETRY_SECONDS: Final = 120.0
"""No attempt begins later than this after the first attempt for the same notification."""

MAX_FAILURES: Final = 10
"""Consecutive notifications dropped after which a target is given up."""

MEMORY_SHARE: Final = 0.125
"""How much of the daemon's memory budget notifications may take, of all targets."""

MAX_CONNECTIONS: Final = 128
"""Open connections in all."""

MAX_CONNECTIONS_PER_HOST: Final = 8
"""It takes 16 unresponsive hosts to hold up the others, and those only for `Timeouts.total`."""

KEEP_ALIVE_SECONDS: Final = 5.0

MAX_BODY_BYTES: Final = 65_536
MAX_BODY_SECONDS: Final = 1.0
"""How much of a response's body is read, and for how long, so that its connection can be reused. Only the status counts."""

CLOSE_SECONDS: Final = 1.0
"""How long closing the connections may take at the end."""

QueueKey: TypeAlias = tuple[str | None, str | None]
"""Task id and config id."""


def is_push_available() -> bool:
    """Whether the extra `push` is installed, without which no notification can be sent."""
    from importlib.util import find_spec  # late: asked once

    return find_spec("h11") is not None


@final
class PushNotifier:
    """One per daemon, used on its event loop. With `allow_private`, private and loopback addresses are allowed.

    Where all notifications exceed their share of the `budget`, the oldest of the target that holds most are dropped.
    """

    def __init__(
        self,
        *,
        allow_private: bool = False,
        timing: Timing = SYSTEM_TIMING,
        network: Network | None = None,
        timeouts: Timeouts = Timeouts(),  # noqa: B008 - immutable
        tracing: Tracing | None = None,
        budget: MemoryBudget | None = None,
    ) -> None:
        self._tracing = tracing
        self._budget = budget
        self._allow_private = allow_private
        self._timing = timing
        self._network = network or SystemNetwork()
        self._timeouts = timeouts
        self._pool: ConnectionPool | None = None
        self._connections: anyio.Semaphore | None = None
        self._connections_per_host: dict[str, anyio.Semaphore] = {}
        self._queues: dict[QueueKey, DeliveryQueue] = {}
        self._tasks: anyio.abc.TaskGroup | None = None
        self._active = 0
        self._drained: anyio.Event | None = None
        self._close_scheduled = False
        self._draining = False

    def counts(self) -> dict[str, int]:
        """Targets that have a queue, or failed last, and notifications that wait or are being delivered."""
        return {"targets": len(self._queues), "notifications": sum(map(_unsent, self._queues.values()))}

    def check_config(self, config: PushConfig, *, param: str) -> None:
        """Raises `FailureError(InvalidParams)` for a config to which nothing can be sent.

        `param` is the path of the config in the params, empty if its fields are params themselves. Whether a name resolves
        to a private address is checked for each connection only.
        """
        prefix = f"{param}." if param else ""
        destination = parse_url(config.url, allow_private=self._allow_private)
        if isinstance(destination, str):
            raise FailureError(InvalidParams(f"{prefix}url", destination, "string"))
        invalid = find_invalid_field(config)
        if invalid is not None:
            field, expected = invalid
            raise FailureError(InvalidParams(f"{prefix}{field}", expected, "string" if field == "token" else "object"))

    def update_target(self, target: PushTarget) -> None:
        """A config was set, perhaps again, by a caller who may see its task: redact its secrets in the logs. If its target
        had been given up, deliveries resume with the next event.
        """
        self._redact_secrets(target.config)
        queue = self._queues.get(_key(target))
        if queue is not None:
            queue.replace_target(target)

    def enqueue(self, target: PushTarget, body: bytes, *, final: bool) -> None:
        """Queue one notification; `final` marks the task's terminal status. Never waits, never raises.

        Before `run` begins, notifications only wait.
        """
        key = _key(target)
        queue = self._queues.get(key)
        if queue is None:
            queue = self._queues[key] = DeliveryQueue(target, self._count)
            self._redact_secrets(target.config)
        elif queue.target != target:
            queue.replace_target(target)
            self._redact_secrets(target.config)
        if not queue.given_up:
            queue.put(Notification(body, final, None if self._tracing is None else self._tracing.origin()))
            self._start_delivery(key, queue)
            self._make_room()
        elif final:
            del self._queues[key]

    def _count(self, size: int) -> None:
        if self._budget is not None:
            self._budget.add("notifications", size)

    def _make_room(self) -> None:
        """Drop what waits, of the target that holds most, until all are within their share. What is under way stays."""
        budget = self._budget
        while budget is not None and budget.held("notifications") > MEMORY_SHARE * budget.limit:
            largest = max(self._queues.values(), key=lambda queue: queue.bytes)
            if not largest.bytes:
                return
            largest.drop()

    def remove_target(self, task_id: str, config_id: str) -> None:
        """Send nothing more to this config's target. A delivery that is under way is cancelled."""
        queue = self._queues.pop((task_id, config_id), None)
        if queue is not None:
            queue.clear()
            if queue.delivery is not None:
                queue.delivery.cancel()

    async def run(self) -> None:
        """Deliver until cancelled. Deliveries under way are cancelled with it; use `drain` first."""
        try:
            async with anyio.create_task_group() as self._tasks:
                for key, queue in self._queues.items():
                    self._start_delivery(key, queue)
                await anyio.sleep_forever()
        finally:
            self._tasks = None
            with anyio.CancelScope(shield=True), anyio.move_on_after(CLOSE_SECONDS):
                await self._close_connections()

    async def drain(self, seconds: float) -> None:
        """Give every queued notification one last attempt, at once, within `seconds` for all. Call it while `run` runs.

        Logs how many were not delivered.
        """
        self._draining = True
        self._drained = anyio.Event()
        for queue in self._queues.values():
            if queue.backoff_scope is not None:
                queue.backoff_scope.cancel()
        if self._active:
            with anyio.move_on_after(seconds):
                await self._drained.wait()
        unsent = [count for queue in self._queues.values() if (count := _unsent(queue))]
        if unsent:
            log.warning("push.unsent", targets=len(unsent), notifications=sum(unsent))

    # -- delivery to one target --------------------------------------------------------------------------------

    def _start_delivery(self, key: QueueKey, queue: DeliveryQueue) -> None:
        if self._tasks is not None and queue.delivery is None and (len(queue) or queue.dropped):
            self._active += 1
            queue.delivery = self._tasks.start_soon(self._deliver_all, key, queue)

    async def _deliver_all(self, key: QueueKey, queue: DeliveryQueue) -> None:
        """Deliver one notification after the other, until the queue is empty."""
        try:
            while (notification := queue.take()) is not None:
                self._record(queue, await self._deliver(queue, notification))
        finally:
            queue.delivery = None
            queue.release()
            self._log_dropped(queue)
            if self._queues.get(key) is queue and not len(queue) and (queue.closed or not queue.failures):
                del self._queues[key]
            self._active -= 1
            self._check_idle()

    async def _deliver(self, queue: DeliveryQueue, notification: Notification) -> DeliveryFailure | None:
        """Attempt until it succeeds or must not be retried. Returns the last failure, None for success."""
        began = self._timing.now()
        attempts = 0
        while True:
            attempts += 1
            if self._tracing is None:
                failure = await self._attempt(queue.target, notification.body)
            else:
                failure = await self._traced_attempt(self._tracing, queue.target, notification, attempts)
            delay = None if failure is None else self._backoff(attempts, failure, self._timing.now() - began)
            if delay is None:
                return failure
            with anyio.CancelScope() as queue.backoff_scope:
                await self._timing.sleep(delay)
            queue.backoff_scope = None

    async def _traced_attempt(
        self, tracing: Tracing, target: PushTarget, notification: Notification, attempt: int
    ) -> DeliveryFailure | None:
        span, trace_headers = tracing.push(notification.origin, attempt=attempt)
        try:
            failure = await self._attempt(target, notification.body, trace_headers)
            if failure is not None:
                if isinstance(failure.cause, int):
                    span.tell(HTTP_STATUS, failure.cause)
                span.record_error(str(failure.cause))
            return failure
        finally:
            span.end()

    async def _attempt(
        self, target: PushTarget, body: bytes, more_headers: Mapping[str, str] = {}
    ) -> DeliveryFailure | None:
        """One attempt; None for any 2xx response. If this is cancelled, the notification may have arrived or not. Waiting for a
        connection takes none of its time."""
        from ..client.outbound.connection import OutboundError  # late: loads h11

        destination = parse_url(target.config.url, allow_private=self._allow_private)
        if isinstance(destination, str) or find_invalid_field(target.config) is not None:  # stored under other settings
            return DeliveryFailure("url", retryable=False)
        headers = [*request_headers(target), *more_headers.items()]
        try:
            async with self._connection_slot(destination.authority):
                with anyio.move_on_after(self._timeouts.total) as attempt:
                    return await self._exchange(destination, headers, body, attempt)
        except OutboundError as exc:
            return DeliveryFailure(_REASONS.get(exc.reason, exc.reason), retryable=exc.reason != "address")
        return DeliveryFailure("timeout", retryable=True)

    async def _exchange(
        self, destination: Destination, headers: list[tuple[str, str]], body: bytes, attempt: anyio.CancelScope
    ) -> DeliveryFailure | None:
        head: ResponseHead | None = None
        fields = [("Host", destination.authority), *headers, ("Content-Length", str(len(body)))]
        async with self._open_pool().connection(destination) as connection:
            with anyio.move_on_after(self._timeouts.read):
                await connection.send("POST", destination.request_target, fields, body)
                head = await connection.read_head()
            if head is None:
                return DeliveryFailure("timeout", retryable=True)
            attempt.deadline = math.inf  # the status is here; the body has a limit of its own
            with anyio.move_on_after(MAX_BODY_SECONDS):
                await connection.drain(MAX_BODY_BYTES)
        return _failure_of(head)

    def _backoff(self, attempts: int, failure: DeliveryFailure, elapsed: float) -> float | None:
        """Seconds until the next attempt; None if there is none."""
        if not failure.retryable or attempts >= MAX_ATTEMPTS or self._draining:
            return None
        backoff = self._timing.jitter() * exponential_backoff(
            INITIAL_BACKOFF_SECONDS, MAX_BACKOFF_SECONDS, attempts - 1
        )
        delay = min(MAX_BACKOFF_SECONDS, max(failure.retry_after, backoff))
        return delay if elapsed + delay < RETRY_SECONDS else None

    def _record(self, queue: DeliveryQueue, failure: DeliveryFailure | None) -> None:
        """Count and log the outcome of a delivery, and give the target up after too many failures."""
        if failure is None:
            queue.failures = 0
            return
        queue.failures += 1
        cause = {"status" if isinstance(failure.cause, int) else "reason": failure.cause}
        log.warning("push.failed", **_log_fields(queue.target), **cause)
        if queue.failures >= MAX_FAILURES:
            queue.given_up = True
            log.warning("push.given_up", **_log_fields(queue.target), notifications=queue.clear())

    def _log_dropped(self, queue: DeliveryQueue) -> None:
        if queue.dropped:
            log.warning("push.dropped", **_log_fields(queue.target), notifications=queue.dropped)
            queue.dropped = 0

    # -- connections and secrets -------------------------------------------------------------------------------

    def _open_pool(self) -> ConnectionPool:
        from ..client.outbound.pool import ConnectionPool, PoolTimeouts  # late: loads h11

        if self._pool is None:
            self._pool = ConnectionPool(
                allow_private=self._allow_private,
                network=self._network,
                timeouts=PoolTimeouts(connect=self._timeouts.connect),
                max_connections=MAX_CONNECTIONS,
            )
        return self._pool

    @asynccontextmanager
    async def _connection_slot(self, host: str) -> AsyncIterator[None]:
        """Hold one of the host's connections, then one of all."""
        self._connections = self._connections or anyio.Semaphore(MAX_CONNECTIONS)
        of_host = self._connections_per_host.setdefault(host, anyio.Semaphore(MAX_CONNECTIONS_PER_HOST))
        try:
            async with of_host, self._connections:
                yield
        finally:
            if of_host.value == MAX_CONNECTIONS_PER_HOST and not of_host.statistics().tasks_waiting:
                self._connections_per_host.pop(host, None)

    def _check_idle(self) -> None:
        """When no delivery is under way, let `drain` return and close the connections soon."""
        if self._active:
            return
        if self._drained is not None:
            self._drained.set()
        if self._tasks is not None and not self._close_scheduled:
            self._close_scheduled = True
            self._tasks.start_soon(self._close_idle_connections)

    async def _close_idle_connections(self) -> None:
        await self._timing.sleep(KEEP_ALIVE_SECONDS)
        self._close_scheduled = False
        if not self._active:
            await self._close_connections()

    async def _close_connections(self) -> None:
        if self._pool is not None:
            await self._pool.aclose()

    def _redact_secrets(self, config: PushConfig) -> None:
        """Have the config's token and credentials redacted in the logs. Only those that look random are: a caller who sets a word
        as a token must not make it disappear from every line."""
        from ..errors.redaction import register_caller_secret  # late: only tasks with push targets pay for it

        authentication = config.authentication
        for secret in (config.token, authentication.credentials if authentication is not None else None):
            if secret:
                register_caller_secret(secret)


def _unsent(queue: DeliveryQueue) -> int:
    """How many of its notifications wait or are being delivered."""
    return len(queue) + (queue.delivery is not None)


def _key(target: PushTarget) -> QueueKey:
    return target.config.task_id, target.config.id


def _log_fields(target: PushTarget) -> dict[str, object]:
    destination = parse_url(target.config.url, allow_private=True)
    host = destination.host if isinstance(destination, Destination) else None
    return {"task": target.config.task_id, "config": target.config.id, "host": host}
