"""Push notifications: every event of a task goes to each of its push targets, beside the event path (A2A 1.0 section 4.3).

`PushNotifier.offer` only queues. Each target has a queue and, while something waits in it, one task that delivers: so the order
is kept, and no target waits for another. A notification that can't be delivered is tried again, then dropped; a target
that takes nothing is given up. URLs, tokens and credentials are never logged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias, final

from ....errors.backoff import SYSTEM_TIMING, Timing, exponential_backoff
from ....errors.exceptions import FailureError
from ....errors.failures import InvalidParams
from ...logs import log
from ..model.types import PushConfig
from ..stores.interface import PushTarget
from .delivery import KEEP_ALIVE_SECONDS, Failed, Patience, Post, fault, headers
from .network import Network, SystemNetwork
from .queue import DeliveryQueue, Notification
from .ssrf import Destination, aim

if TYPE_CHECKING:
    import anyio
    import anyio.abc

    from ....errors.redaction.caller_secrets import CallerSecrets

ATTEMPTS: Final = 5
"""At one notification, the first included."""

INITIAL_SECONDS: Final = 0.5
CAP_SECONDS: Final = 30.0
"""Back-off with full jitter after the n-th failure: up to `INITIAL_SECONDS` × 2ⁿ⁻¹, at most the cap. A `Retry-After` is
honoured up to the cap, too."""

LONGEST_SECONDS: Final = 120.0
"""After a notification's first attempt began, no further one begins later than this."""

FAILURES: Final = 10
"""Notifications dropped in a row after which a target is given up."""

Key: TypeAlias = tuple[str | None, str | None]


def available() -> bool:
    """Whether notifications can be sent at all: with the extra `push`."""
    from importlib.util import find_spec  # late: asked once

    return find_spec("httpcore") is not None


@final
class PushNotifier:
    """One per daemon, used on its event loop. `allow_private` lets notifications go to private and loopback addresses, too."""

    def __init__(
        self,
        *,
        allow_private: bool = False,
        timing: Timing = SYSTEM_TIMING,
        network: Network | None = None,
        patience: Patience = Patience(),  # noqa: B008 - immutable
    ) -> None:
        self._allow_private = allow_private
        self._timing = timing
        self._post = Post(network or SystemNetwork(), patience, allow_private=allow_private)
        self._lines: dict[Key, DeliveryQueue] = {}
        self._guests: CallerSecrets | None = None
        self._tasks: anyio.abc.TaskGroup | None = None
        self._active = 0
        self._quiet: anyio.Event | None = None
        self._resting = False
        self._draining = False

    def check(self, config: PushConfig, *, param: str) -> None:
        """Raises `FailureError(InvalidParams)` for a config by which nothing can be sent. `param` is the config's path, empty
        where its fields stand among the params themselves.

        Whether a name leads to a private address is seen only when it is connected to.
        """
        inside = f"{param}." if param else ""
        aimed = aim(config.url, allow_private=self._allow_private)
        if isinstance(aimed, str):
            raise FailureError(InvalidParams(f"{inside}url", aimed, "string"))
        found = fault(config)
        if found is not None:
            field, expected = found
            raise FailureError(InvalidParams(f"{inside}{field}", expected, "string" if field == "token" else "object"))
        self._conceal(config)

    def renew(self, target: PushTarget) -> None:
        """A config was set, perhaps once more: if its target had been given up, it is tried again from the next event on."""
        line = self._lines.get(_key(target))
        if line is not None:
            line.revive(target)

    def offer(self, target: PushTarget, body: bytes, *, last: bool) -> None:
        """Queue one notification. `last`: it tells of the task's terminal status. Never waits, never raises.

        Before `run` has begun it is kept for then.
        """
        key = _key(target)
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = DeliveryQueue(target)
            self._conceal(target.config)
        elif line.target != target:
            line.revive(target)
            self._conceal(target.config)
        if not line.given_up:
            line.put(Notification(body, last))
            self._start(key, line)
        elif last:
            del self._lines[key]

    def forget(self, task_id: str, config_id: str) -> None:
        """The config is gone: nothing more is sent by it, and what is on its way is broken off."""
        line = self._lines.pop((task_id, config_id), None)
        if line is not None:
            line.clear()
            if line.work is not None:
                line.work.cancel()

    async def run(self) -> None:
        """Deliver, until cancelled; then what is on its way is broken off."""
        import anyio  # late: the first replies leave without an event loop

        try:
            async with anyio.create_task_group() as self._tasks:
                for key, line in self._lines.items():
                    self._start(key, line)
                await anyio.sleep_forever()
        finally:
            self._tasks = None
            with anyio.CancelScope(shield=True), anyio.move_on_after(1):
                await self._post.close()

    async def drain(self, seconds: float) -> None:
        """Give what waits its last chance while `run` still runs: one attempt each, at once, and so many seconds for all.

        What was not delivered by then is counted in the log.
        """
        import anyio  # late, as above

        self._draining = True
        self._quiet = anyio.Event()
        for line in self._lines.values():
            if line.pause is not None:
                line.pause.cancel()
        if self._active:
            with anyio.move_on_after(seconds):
                await self._quiet.wait()
        unsent = [count for line in self._lines.values() if (count := len(line) + (line.work is not None))]
        if unsent:
            log.warning("push.unsent", targets=len(unsent), notifications=sum(unsent))

    # -- one target --------------------------------------------------------------------------------------------

    def _start(self, key: Key, line: DeliveryQueue) -> None:
        import anyio  # late, as above

        if self._tasks is not None and line.work is None and len(line):
            line.work = anyio.CancelScope()
            self._active += 1
            self._tasks.start_soon(self._work, key, line, line.work)

    async def _work(self, key: Key, line: DeliveryQueue, scope: anyio.CancelScope) -> None:
        """Deliver what waits, one after the other, until nothing does."""
        try:
            with scope:
                while (notification := line.take()) is not None:
                    self._settle(line, await self._deliver(line, notification.body))
        finally:
            line.work = None
            self._tell_dropped(line)
            if self._lines.get(key) is line and not len(line) and (line.closed or not line.failures):
                del self._lines[key]
            self._active -= 1
            self._rest()

    async def _deliver(self, line: DeliveryQueue, body: bytes) -> Failed | None:
        """Try until it is taken, or no more. The last failure, None when it was taken."""
        import anyio  # late, as above

        began = self._timing.now()
        number = 0
        while True:
            number += 1
            failed = await self._attempt(line.target, body)
            delay = None if failed is None else self._delay(number, failed, self._timing.now() - began)
            if delay is None:
                return failed
            with anyio.CancelScope() as line.pause:
                await self._timing.sleep(delay)
            line.pause = None

    async def _attempt(self, target: PushTarget, body: bytes) -> Failed | None:
        to = aim(target.config.url, allow_private=self._allow_private)
        if isinstance(to, str) or fault(target.config) is not None:  # it was stored under other rules
            return Failed("url", repeatable=False)
        return await self._post.send(to, headers(target), body)

    def _delay(self, number: int, failed: Failed, elapsed: float) -> float | None:
        """Seconds until the next attempt; None when there is none."""
        if not failed.repeatable or number >= ATTEMPTS or self._draining:
            return None
        back_off = self._timing.jitter() * exponential_backoff(INITIAL_SECONDS, CAP_SECONDS, number - 1)
        delay = min(CAP_SECONDS, max(failed.after, back_off))
        return delay if elapsed + delay < LONGEST_SECONDS else None

    def _settle(self, line: DeliveryQueue, failed: Failed | None) -> None:
        if failed is None:
            line.failures = 0
            return
        line.failures += 1
        why = {"status" if isinstance(failed.why, int) else "reason": failed.why}
        log.warning("push.failed", **_about(line.target), **why)
        if line.failures >= FAILURES:
            line.given_up = True
            log.warning("push.given_up", **_about(line.target), notifications=line.clear())

    def _tell_dropped(self, line: DeliveryQueue) -> None:
        if line.dropped:
            log.warning("push.dropped", **_about(line.target), notifications=line.dropped)
            line.dropped = 0

    # -- beside them -------------------------------------------------------------------------------------------

    def _rest(self) -> None:
        """When nobody delivers, tell whoever waits for it, and close the connections soon."""
        if self._active:
            return
        if self._quiet is not None:
            self._quiet.set()
        if self._tasks is not None and not self._resting:
            self._resting = True
            self._tasks.start_soon(self._hang_up)

    async def _hang_up(self) -> None:
        await self._timing.sleep(KEEP_ALIVE_SECONDS)
        self._resting = False
        if not self._active:
            await self._post.close()

    def _conceal(self, config: PushConfig) -> None:
        """Make the scrubber know the config's secrets."""
        if self._guests is None:
            from ....errors.redaction.caller_secrets import (
                CallerSecrets,  # late: only tasks with push targets pay for it
            )

            self._guests = CallerSecrets()
        shown = config.authentication
        for secret in (config.token, shown.credentials if shown is not None else None):
            if secret:
                self._guests.add(secret)


def _key(target: PushTarget) -> Key:
    return target.config.task_id, target.config.id


def _about(target: PushTarget) -> dict[str, object]:
    """What the log says of a target."""
    to = aim(target.config.url, allow_private=True)
    host = to.host if isinstance(to, Destination) else None
    return {"task": target.config.task_id, "config": target.config.id, "host": host}
