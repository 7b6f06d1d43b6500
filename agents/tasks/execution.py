"""One execution of an executor for one task: what it was asked, and how far it is."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Final, final

from ...a2a.states import INACTIVE
from ...a2a.types import CallFacts, ExecutionBegun, Message, Part
from ...daemon.logs import log
from ...errors.codes import ACP_RESERVED
from ...errors.failures import DomainFailure
from ...lazy import anyio
from ..executor_calls import declared_failure
from .executor import RequestContext
from .live_task import LiveTask
from .status_messages import AGENT_FAILED_TEXT, UNFINISHED_TEXT, fail_task, failure_parts, note_failed
from .submitted import Submitted
from .task_events import TaskEvents, was_overtaken

if TYPE_CHECKING:
    from ...daemon.logs.bound import LoggedCall
    from ...daemon.tracing.tracing import Origin


_RESERVED: Final = (
    "ACP fixes what this number means, so editors get another; to have the user sign in: events.require_auth"
)


@final
class Execution(Submitted):
    """`resumes` says that it goes on with one that was cut off. `call` is what is stored with its message. `origin` is the span
    in which it was asked for, `asked_by` the call that did, for the log.
    `started_generation` is that of the task when it began, `done` says that it is over.
    """

    __slots__ = (
        "_is_begun",
        "asked_by",
        "call",
        "context",
        "done",
        "events",
        "origin",
        "resumes",
        "scope",
        "started_generation",
    )

    def __init__(
        self,
        live: LiveTask,
        context: RequestContext,
        call: CallFacts,
        *,
        may_reply: bool = False,
        resumes: bool = False,
    ) -> None:
        super().__init__(live)
        self.context = context
        self.call = call
        self.resumes = resumes
        self.events = TaskEvents(live, may_reply=may_reply)
        self._is_begun = False
        self.started_generation: int | None = None
        self.origin: Origin = None
        self.asked_by: LoggedCall | None = None
        self.scope: anyio.CancelScope | None = None
        self.done = False

    @property
    def reply(self) -> Message | None:
        return self.events.sent_reply

    def publish(self, *, begun: bool) -> None:
        """Publish the message: from then on it is a part of the task, whatever becomes of this execution. `begun` says that no
        other one comes before it. Raises what `LiveTask.publish` raises.
        """
        live, message = self.live, self.context.message
        assert message is not None, "only messages are published"
        self._is_begun = begun
        if self._creates_task:
            live.ensure_created(self.call, begun=begun)
        else:
            self.accept(live.add_message(message, self.call, begun=begun))

    def accept_new(self) -> None:
        if self._creates_task and not self.live.generation:
            self.publish(begun=True)

    def begin(self) -> None:
        """Publish that it begins, unless that is known. The executor may run when the store has that."""
        live = self.live
        if live.generation and not self._is_begun:
            if not self.resumes:
                live.go_on()
            live.publish(ExecutionBegun(-1 if self.position is None else self.position))
        self.started_generation = live.generation

    def conclude(self, fault: BaseException | None, returned: object = None) -> None:
        """Fail the task where the executor raised this `fault`, or left it neither ended nor waiting for its caller."""
        live, scope = self.live, self.scope
        if live.ended or self.reply is not None or (scope is not None and scope.cancel_called):
            if fault is not None and not was_overtaken(self.events, fault):
                log.error("agent.failed", task=live.id, exc=fault)
            return
        live.ensure_created(self.call)
        if fault is not None:
            fail_task(live, *_parts_of(fault, live, of_editor=self.context.editor is not None))
        elif live.state not in INACTIVE and not self._was_answered:
            log.error("agent.unfinished", task=live.id, state=live.state.name.lower(), hint=_way_to_end(returned))
            fail_task(live, Part(text=UNFINISHED_TEXT))

    @property
    def _was_answered(self) -> bool:
        """Whether it has asked, and the answer waits for it to be over: it need not stop its task again."""
        started = self.started_generation
        return started is not None and self.live.stop_generation > started and bool(self.live.waiting)

    @property
    def over(self) -> bool:
        live = self.live
        return (self.done and live.committed == live.generation) or super().over


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
