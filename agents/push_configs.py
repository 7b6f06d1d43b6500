"""Manages the push configs of callers: where a task's push notifications go (A2A 1.0 sections 3.1.7 to 3.1.10). Sends nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

import msgspec

from ..a2a.errors import sends_no_notifications
from ..a2a.types import PushConfig, new_id
from ..daemon.logs import log
from ..errors.exceptions import FailureError
from ..errors.failures import TaskNotFound, UnsupportedOperation
from .live_task import LiveTask, TaskCache
from .notifier import PushNotifier
from .stores.interface import RELOAD_PUSH_TARGETS, OwnerRequest, PushTarget

MAX_CONFIGS: Final = 16
"""Push configs of one task. Each may hold some megabytes of notifications that its receiver has not accepted yet."""

_TOO_MANY: Final = f"A task has at most {MAX_CONFIGS} push notification configs."


@final
class PushConfigs:
    """The push configs of all tasks.

    `lacks_extra` says that there is no notifier only because the extra `push` is not installed, which is logged once.

    Every public method raises `FailureError(PushNotificationNotSupported)` without a `notifier`, and
    `FailureError(TaskNotFound)` for a task that its caller can't see. Those that add a config raise
    `FailureError(UnsupportedOperation)` beyond `MAX_CONFIGS`.
    """

    def __init__(self, cache: TaskCache, notifier: PushNotifier | None, *, lacks_extra: bool = False) -> None:
        self._store = cache.store
        self._cache = cache
        self._notifier = notifier
        self._lacks_extra = lacks_extra

    async def put(self, task_id: str, config: PushConfig, *, scope: str, version: str) -> PushConfig:
        """Add a config, or replace the one of the same id; returns it with its id."""
        self._check_supported()
        async with self._cache.pinned(task_id, scope) as live:
            await self.refresh(live)
            target = self.target(live, config, version)
            await self.save_and_activate(live, target)
            return target.config

    async def get(self, task_id: str, config_id: str | None, *, scope: str) -> PushConfig:
        """One config; the first where no id is given. Raises `FailureError(TaskNotFound)` where there is none."""
        for config in await self.list(task_id, scope=scope):
            if config_id in (None, config.id):
                return config
        raise FailureError(TaskNotFound(task_id=task_id, reason="The task has no such push notification config."))

    async def list(self, task_id: str, *, scope: str) -> Sequence[PushConfig]:
        """All configs of a task, in the order in which they were first put."""
        self._check_supported()
        async with self._cache.pinned(task_id, scope) as live:
            await self.refresh(live)
            return [target.config for target in live.push_targets]

    async def delete(self, task_id: str, config_id: str, *, scope: str) -> None:
        """Send nothing more by this config. Deleting one that does not exist succeeds."""
        self._check_supported()
        async with self._cache.pinned(task_id, scope) as live:
            await self.refresh(live)
            await self._store.delete_push_target(task_id, config_id)
            live.push_targets = _without(live, config_id)
            if self._notifier is not None:
                self._notifier.remove_target(task_id, config_id)
            await self._notify_remote_owner(live)

    async def refresh(self, live: LiveTask) -> None:
        """Load the configs of a task that other daemons may have changed, since it came into memory."""
        if live.shared and self._store.durable and self._notifier is not None:
            before = live.push_targets
            targets = await self._store.load_push_targets(live.id)
            if live.push_targets is before:
                live.push_targets = targets

    # -- configs that come with a message ----------------------------------------------------------------------

    def check_capacity(self, live: LiveTask) -> None:
        """Raises `FailureError` where `attach` would for a new config."""
        self._check_supported()
        _check_room(live, live.push_targets)

    def target(self, live: LiveTask, config: PushConfig, version: str) -> PushTarget:
        """The config as it is stored. Raises `FailureError` as `put` does."""
        self._check_supported()
        config = msgspec.structs.replace(config, id=config.id or new_id(), task_id=live.id)
        _check_room(live, _without(live, config.id))
        return PushTarget(config, version)

    def attach(self, live: LiveTask, config: PushConfig, version: str) -> None:
        """Send the task's events by this config from now on. `save` it when the store has the task."""
        self._activate(live, self.target(live, config, version))

    async def ensure(self, live: LiveTask, config: PushConfig, version: str) -> None:
        """Add a config that came with a message once more, unless the task has it. Raises `FailureError` as `put` does."""
        self._check_supported()
        await self.refresh(live)
        for known in live.push_targets:
            ids = {"id": config.id or known.config.id, "task_id": live.id}
            if known == PushTarget(msgspec.structs.replace(config, **ids), version):
                return
        await self.save_and_activate(live, self.target(live, config, version))

    async def save(self, live: LiveTask) -> None:
        """Store the configs that were attached."""
        for target in live.push_targets:
            await self._store.put_push_target(live.id, target)

    async def save_and_activate(self, live: LiveTask, target: PushTarget) -> None:
        """Store a config, and have the daemon that works on the task send its events by it."""
        await self._store.put_push_target(live.id, target)  # first: nothing is sent to a config that is not stored
        self._activate(live, target)
        await self._notify_remote_owner(live)

    # -- steps -------------------------------------------------------------------------------------------------

    def _check_supported(self) -> None:
        if self._notifier is None:
            if self._lacks_extra:
                self._lacks_extra = False
                log.warning("push.unavailable", install="pip install 'discreet[push]'")
            raise FailureError(sends_no_notifications())

    def _activate(self, live: LiveTask, target: PushTarget) -> None:
        live.push_targets = (*_without(live, target.config.id), target)
        if self._notifier is not None:
            self._notifier.update_target(target)

    async def _notify_remote_owner(self, live: LiveTask) -> None:
        """Tell the daemon that works on the task, if it is another one: it sends the notifications."""
        if live.remote:
            await self._store.send_owner_request(OwnerRequest(live.id, RELOAD_PUSH_TARGETS))


def _check_room(live: LiveTask, others: Sequence[PushTarget]) -> None:
    """Raises `FailureError` where the task can have no config beside these."""
    if len(others) >= MAX_CONFIGS:
        raise FailureError(UnsupportedOperation(task_id=live.id, reason=_TOO_MANY, suggestion="Delete one of them."))


def _without(live: LiveTask, config_id: str | None) -> tuple[PushTarget, ...]:
    return tuple(target for target in live.push_targets if target.config.id != config_id)
