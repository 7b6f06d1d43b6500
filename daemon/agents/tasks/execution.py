"""One execution of an executor for one task: what it was asked, how far it is, and when its sender can be answered."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, final

from ....errors.exceptions import FailureError
from ....errors.failures import Failure
from ....lazy import anyio
from ...logs import log
from ..faults import declared_failure
from ..model.states import INACTIVE, INTERRUPTED
from ..model.types import Message, MessageAdded, Part, Task, TaskState
from .executor import RequestContext
from .live_task import LiveTask, raise_if_lost
from .status_messages import AGENT_FAILED_TEXT, UNFINISHED_TEXT, fail_task, failure_parts
from .task_events import TaskEvents, was_overtaken

if TYPE_CHECKING:
    from ...tracing.tracing import Origin


@final
class Execution:
    """`start_generation` is the task's generation when the execution began, None before. `superseded` says that its task
    waited for its caller and that the next message came while this execution still ran: it need not stop its task again.
    `origin` is the span in which it was asked for. `refusal` is why it never began. `done` says that it is over.
    """

    __slots__ = (
        "_accepted_generation",
        "_creates_task",
        "context",
        "done",
        "events",
        "live",
        "origin",
        "refusal",
        "scope",
        "start_generation",
        "superseded",
    )

    def __init__(self, live: LiveTask, context: RequestContext, *, may_reply: bool) -> None:
        self.live = live
        self.context = context
        self.events = TaskEvents(live, may_reply=may_reply and live.generation == 0)
        self._creates_task = live.generation == 0
        self._accepted_generation: int | None = None
        self.superseded = False
        self.start_generation: int | None = None
        self.origin: Origin = None
        self.scope: anyio.CancelScope | None = None
        self.done = False
        self.refusal: Failure | None = None

    @property
    def reply(self) -> Message | None:
        """The agent's answer where there is no task."""
        return self.events.sent_reply

    @property
    def accepted_generation(self) -> int | None:
        """The generation of the event that put the message into the task's history, None before."""
        if self._creates_task:
            return 1 if self.live.generation else None
        return self._accepted_generation

    def accept(self) -> None:
        """Publish the message: from then on it is a part of the task, whatever becomes of this execution.

        A new task begins with its message. A task that waits for its caller first goes on, so that the agent's question
        precedes the answer in the history. Raises what `LiveTask.publish` raises.
        """
        live, message = self.live, self.context.message
        if self._creates_task:
            live.ensure_created()
        elif message is not None:
            self.go_on()
            live.publish(MessageAdded(message))
            self._accepted_generation = live.generation

    def accept_new(self) -> None:
        """Begin a new task now, also where the agent might have answered without one: its sender does not wait."""
        if self._creates_task:
            self.accept()

    def go_on(self) -> None:
        """Have a task that waits for its caller go on."""
        if self.live.state in INTERRUPTED:
            self.live.set_status(TaskState.WORKING)

    def conclude(self, fault: BaseException | None, returned: object = None) -> None:
        """Fail the task where the executor raised this `fault`, or left it neither ended nor waiting for its caller."""
        live, scope = self.live, self.scope
        if live.ended or self.reply is not None or (scope is not None and scope.cancel_called):
            if fault is not None and not was_overtaken(self.events, fault):
                log.error("agent.failed", task=live.id, exc=fault)
            return
        live.ensure_created()
        if fault is not None:
            fail_task(live, *_parts_of(fault, live))
        elif live.state not in INACTIVE and not self.superseded:
            log.error("agent.unfinished", task=live.id, state=live.state.name.lower(), hint=_way_to_end(returned))
            fail_task(live, Part(text=UNFINISHED_TEXT))

    async def wait_accepted(self) -> None:
        """Wait until the message was published. Raises `FailureError` or `TaskConflict` where it never will be."""
        live = self.live
        while self.accepted_generation is None and self.refusal is None and live.lost is None:
            await live.wait_for_change()
        self._raise_refusal()

    def _raise_refusal(self) -> None:
        if self.refusal is not None:
            raise FailureError(self.refusal)
        raise_if_lost(self.live)

    @property
    def stopped(self) -> bool:
        """Whether this execution has stopped its task, and the store has that."""
        live, start = self.live, self.start_generation
        return start is not None and start < live.stop_generation <= live.committed

    @property
    def settled(self) -> bool:
        """Whether the sender can be answered."""
        live = self.live
        over = (
            self.done or (live.ended and self.accepted_generation is not None)
        ) and live.committed == live.generation
        return self.stopped or over or bool(self.refusal or self.reply or live.lost)

    async def wait_settled(self) -> Task | None:
        """Wait until the sender can be answered.

        Returns the task as it stopped, even if the next execution has begun by now; None where this execution did not stop
        it, as when the task ended before its turn. Raises `FailureError` or `TaskConflict` where the message was refused or
        the task is lost.
        """
        while not self.settled:
            await self.live.wait_for_change()
        self._raise_refusal()
        return self.live.stopped_task if self.stopped else None


def _way_to_end(returned: object) -> str:
    """What the author of an executor probably forgot, where it left its task with this result."""
    if isinstance(returned, Coroutine):
        returned.close()
        return "execute returned a coroutine: is an `await` missing?"
    if returned is None:
        return "end with `await events.complete(…)`, or with another status that ends or waits; is an `await` missing?"
    return f"execute returned {type(returned).__name__}, which is not sent: `await events.complete(…)`"


def _parts_of(fault: BaseException, live: LiveTask) -> tuple[Part, ...]:
    """What a caller may know of an executor's exception: everything that a declared error declares, else nothing."""
    failure = declared_failure(fault)
    if failure is not None:
        return failure_parts(failure)
    log.error("agent.failed", task=live.id, exc=fault)
    return (Part(text=AGENT_FAILED_TEXT),)
