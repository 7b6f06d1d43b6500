"""Where the news of tasks go: the push configs that callers put, get and drop (A2A 1.0 sections 3.1.7 to 3.1.10)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, final

import msgspec

from ....errors.exceptions import FailureError
from ....errors.failures import PushNotificationNotSupported, TaskNotFound, UnsupportedOperation
from ..model.ids import new_id
from ..model.types import PushConfig
from ..stores.interface import PushTarget, TaskStore
from ..tasks.live_task import LiveTask
from ..tasks.task_cache import TaskCache

if TYPE_CHECKING:
    from ..push.notifier import PushNotifier

MOST_TARGETS: Final = 16
"""Push configs of one task: each may hold some megabytes of what its receiver has not taken yet."""

TOO_MANY: Final = f"A task has at most {MOST_TARGETS} push notification configs."

TARGETS: Final = "targets"
"""What the daemon that works on a task is asked when its configs have changed."""


@final
class PushConfigs:
    """All tasks' push configs. Without a `pusher` every method raises `FailureError(PushNotificationNotSupported)`, and
    `put` raises `FailureError(UnsupportedOperation)` for one config too many."""

    def __init__(self, store: TaskStore, residents: TaskCache, pusher: PushNotifier | None) -> None:
        self._store = store
        self._residents = residents
        self._pusher = pusher

    async def put(self, task_id: str, config: PushConfig, *, scope: str, dialect: str) -> PushConfig:
        """Send the news of a task there, too; the config with its id."""
        self._check()
        async with self._residents.held(task_id, scope) as live:
            target = self._target(live, config, dialect)
            await self._store.put_target(task_id, target)  # first: what it does not have must not be sent to either
            self._point(live, target)
            await self._tell_keeper(live)
            return target.config

    def aim(self, live: LiveTask, config: PushConfig, dialect: str) -> None:
        """From now on a task's news go there; `keep` it when the store has the task."""
        self._point(live, self._target(live, config, dialect))

    def _target(self, live: LiveTask, config: PushConfig, dialect: str) -> PushTarget:
        if self._pusher is None:
            raise FailureError(PushNotificationNotSupported())
        config = msgspec.structs.replace(config, id=config.id or new_id(), task_id=live.id)
        if len(_others(live, config.id)) >= MOST_TARGETS:
            raise FailureError(UnsupportedOperation(task_id=live.id, reason=TOO_MANY))
        return PushTarget(config, dialect)

    def _point(self, live: LiveTask, target: PushTarget) -> None:
        live.targets = (*_others(live, target.config.id), target)
        if self._pusher is not None:
            self._pusher.renew(target)

    async def keep(self, live: LiveTask) -> None:
        """Put what was aimed into the store."""
        for target in live.targets:
            await self._store.put_target(live.id, target)

    async def get(self, task_id: str, config_id: str | None, *, scope: str) -> PushConfig:
        """One config; the first where no id is given. Raises `FailureError(TaskNotFound)` where there is none."""
        for config in await self.all(task_id, scope=scope):
            if config_id in (None, config.id):
                return config
        raise FailureError(TaskNotFound(task_id=task_id, reason="The task has no such push notification config."))

    async def all(self, task_id: str, *, scope: str) -> Sequence[PushConfig]:
        """All configs of a task, in the order in which they were put."""
        self._check()
        async with self._residents.held(task_id, scope) as live:
            return [target.config for target in live.targets]

    async def drop(self, task_id: str, config_id: str, *, scope: str) -> None:
        """Send no more news there. Dropping it twice is as good as once."""
        self._check()
        async with self._residents.held(task_id, scope) as live:
            await self._store.drop_target(task_id, config_id)
            live.targets = _others(live, config_id)
            if self._pusher is not None:
                self._pusher.forget(task_id, config_id)
            await self._tell_keeper(live)

    async def _tell_keeper(self, live: LiveTask) -> None:
        """Another daemon that works on the task sends its news."""
        if live.foreign:
            await self._store.ask_owner(live.id, TARGETS)

    def admit(self, live: LiveTask) -> None:
        """Raises `FailureError` where `aim` would, for one more config."""
        self._check()
        if len(live.targets) >= MOST_TARGETS:
            raise FailureError(UnsupportedOperation(task_id=live.id, reason=TOO_MANY))

    def _check(self) -> None:
        if self._pusher is None:
            raise FailureError(PushNotificationNotSupported())


def _others(live: LiveTask, config_id: str | None) -> tuple[PushTarget, ...]:
    return tuple(known for known in live.targets if known.config.id != config_id)
