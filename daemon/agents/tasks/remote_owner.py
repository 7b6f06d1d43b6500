"""What a daemon asks of another one that works on a task, through their common store."""

from __future__ import annotations

from ....errors.exceptions import FailureError
from ....errors.failures import TaskNotCancelable
from ..model.types import Task
from ..stores.interface import CANCEL, TaskStore
from .live_task import LiveTask, raise_if_lost
from .runner import CANCEL_SECONDS


async def cancel_remotely(live: LiveTask, store: TaskStore) -> Task:
    """Ask the daemon that works on the task to cancel it; returns the task when it has ended.

    Raises `FailureError(TaskNotCancelable)` where it has not after `CANCEL_SECONDS`, and what `raise_if_lost` raises.
    """
    import anyio  # late: the first replies leave without an event loop

    await store.send_owner_request(live.id, CANCEL)
    with anyio.move_on_after(CANCEL_SECONDS):
        while not live.ended and live.remote and live.lost is None:
            await live.wait_for_change()
    if not live.ended:
        raise_if_lost(live)
        raise FailureError(TaskNotCancelable(task_id=live.id, current_state=live.state.value))
    return live.task()
