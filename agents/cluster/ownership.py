"""How a daemon becomes the owner of a task whose owner is dead, or that nobody has begun."""

from __future__ import annotations

from collections.abc import Sequence

from ...a2a.timestamps import now
from ..stores.interface import TaskChange, TaskStore
from ..tasks.live_task import LiveTask


async def take_ownership(store: TaskStore, lives: Sequence[tuple[LiveTask, str]]) -> Sequence[LiveTask]:
    """Take tasks, each from the owner that the store has for it, in one commit. Returns those that this daemon got: they have
    no other owner any more. Of several daemons that try, one gets a task. Raises `StoreError`.
    """
    changes = [_change_of_owner(live, previous_owner, store.owner_id) for live, previous_owner in lives]
    refusals = await store.commit(changes) if changes else ()
    taken = [live for (live, _), refusal in zip(lives, refusals, strict=True) if refusal is None]
    for live in taken:
        live.remote_owner = None
        live.owned = True
        live.notify()
    return taken


def _change_of_owner(live: LiveTask, previous_owner: str, owner: str) -> TaskChange:
    task = live.task()
    return TaskChange(
        task_id=live.id,
        expected_generation=live.generation,
        events=(),
        scope=live.scope,
        context_id=live.context_id,
        state=live.state,
        status_timestamp=task.status.timestamp or now(),
        owner=owner,
        previous_owner=previous_owner,
    )
