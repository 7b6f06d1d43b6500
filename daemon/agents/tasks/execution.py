"""One execution of an executor for one task: what it was asked, how far it is, and when its sender can be answered."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from ....errors.exceptions import FailureError
from ....errors.failures import Failure
from ..model.types import Message, Task, TaskCreated
from .executor import RequestContext
from .live_task import LiveTask, raise_if_lost
from .task_events import TaskEvents

if TYPE_CHECKING:
    import anyio


@final
class Execution:
    """`creates_task` says that the task began with this execution's message.

    `start_generation` is the task's generation when the execution began, None before. `refusal` is why it never began.
    `done` says that it is over.
    """

    __slots__ = ("context", "creates_task", "done", "events", "live", "refusal", "scope", "start_generation")

    def __init__(self, live: LiveTask, context: RequestContext) -> None:
        self.live = live
        self.context = context
        self.events = TaskEvents(live, self.ensure_created)
        self.creates_task = live.generation == 0
        self.start_generation: int | None = None
        self.scope: anyio.CancelScope | None = None
        self.done = False
        self.refusal: Failure | None = None

    @property
    def reply(self) -> Message | None:
        """The agent's answer where there is no task."""
        return self.events.sent_reply

    def ensure_created(self) -> None:
        """Publish a new task before its first event."""
        if not self.live.generation:
            self.live.publish(TaskCreated(self.live.task()))

    @property
    def stopped(self) -> bool:
        """Whether this execution has stopped its task, and the store has that."""
        live, start = self.live, self.start_generation
        return start is not None and start < live.stop_generation <= live.committed

    @property
    def settled(self) -> bool:
        """Whether the sender can be answered."""
        live = self.live
        over = self.done and live.committed == live.generation
        return self.stopped or over or bool(self.refusal or self.reply or live.lost)

    async def wait_settled(self) -> Task | None:
        """Wait until the sender can be answered.

        Returns the task as it stopped, even if the next execution has begun by now; None where it did not stop. Raises
        `FailureError` or `TaskConflict` where the message was refused or the task is lost.
        """
        while not self.settled:
            await self.live.wait_for_change()
        if self.refusal is not None:
            raise FailureError(self.refusal)
        raise_if_lost(self.live)
        return self.live.stopped_task if self.stopped else None
