"""One execution of an executor for one task: what it was asked, and how far it is."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Final, final

from ....errors.codes import ACP_RESERVED
from ....errors.failures import DomainFailure
from ....lazy import anyio
from ...logs import log
from ..faults import declared_failure
from ..model.states import INACTIVE, INTERRUPTED
from ..model.types import Message, MessageAdded, Part, TaskState
from .executor import RequestContext
from .live_task import LiveTask
from .status_messages import AGENT_FAILED_TEXT, UNFINISHED_TEXT, fail_task, failure_parts, note_failed
from .submitted import Submitted
from .task_events import TaskEvents, was_overtaken

if TYPE_CHECKING:
    from ...logs.bound import LoggedCall
    from ...tracing.tracing import Origin


_RESERVED: Final = (
    "ACP fixes what this number means, so editors get another; to have the user sign in: events.require_auth"
)


@final
class Execution(Submitted):
    """`superseded` says that its task waited for its caller and that the next message came while this execution still ran: it
    need not stop its task again. `origin` is the span in which it was asked for, `asked_by` the call that did, for
    the log. `done` says that it is over. With `accepted` its message is in the task's history already.
    """

    __slots__ = (
        "_accepted_generation",
        "_creates_task",
        "asked_by",
        "context",
        "done",
        "events",
        "origin",
        "scope",
        "superseded",
    )

    def __init__(self, live: LiveTask, context: RequestContext, *, may_reply: bool, accepted: bool = False) -> None:
        super().__init__(live)
        self.context = context
        self.events = TaskEvents(live, may_reply=may_reply and live.generation == accepted)
        self._creates_task = live.generation == 0
        self._accepted_generation = live.generation if accepted else None
        self.superseded = False
        self.origin: Origin = None
        self.asked_by: LoggedCall | None = None
        self.scope: anyio.CancelScope | None = None
        self.done = False

    @property
    def reply(self) -> Message | None:
        return self.events.sent_reply

    @property
    def accepted_generation(self) -> int | None:
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
            fail_task(live, *_parts_of(fault, live, of_editor=self.context.editor is not None))
        elif live.state not in INACTIVE and not self.superseded:
            log.error("agent.unfinished", task=live.id, state=live.state.name.lower(), hint=_way_to_end(returned))
            fail_task(live, Part(text=UNFINISHED_TEXT))

    @property
    def over(self) -> bool:
        live = self.live
        ended = live.ended and self.accepted_generation is not None
        return (self.done or ended) and live.committed == live.generation


def _way_to_end(returned: object) -> str:
    """What the author of an executor probably forgot, where it left its task with this result."""
    if isinstance(returned, Coroutine):
        returned.close()
        return "execute returned a coroutine: is an `await` missing?"
    if returned is None:
        return "end with `await events.complete(…)`, or with another status that ends or waits; is an `await` missing?"
    return f"execute returned {type(returned).__name__}, which is not sent: `await events.complete(…)`"


def _parts_of(fault: BaseException, live: LiveTask, *, of_editor: bool) -> tuple[Part, ...]:
    """What a caller may know of an executor's exception: everything that a declared error declares, else nothing."""
    failure = declared_failure(fault)
    if failure is not None:
        if of_editor and isinstance(failure, DomainFailure) and failure.number in ACP_RESERVED:
            log.warning("error.number_reserved", task=live.id, code=failure.code, number=failure.number, hint=_RESERVED)
        note_failed(live.id, failure)
        return failure_parts(failure)
    log.error("agent.failed", task=live.id, exc=fault)
    return (Part(text=AGENT_FAILED_TEXT),)
