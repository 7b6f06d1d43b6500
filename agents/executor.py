"""Defines the `AgentExecutor` Protocol, which a developer implements to write an agent, and the objects it is given. Runs
nothing.

    class Greeter:
        async def execute(self, context: RequestContext, events: TaskEvents) -> None:
            await events.working("Thinking …")
            await events.artifact("Hello!")
            await events.complete()
"""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import datetime
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Protocol,
    TypeAlias,
    TypeVar,
    TypeVarTuple,
    final,
    overload,
    runtime_checkable,
)

import msgspec
from msgspec import UNSET

from ..a2a.errors import InvalidStateTransition, MisplacedReplyError, TaskConflict
from ..a2a.task import MAX_JSON_DEPTH, is_within_max_depth
from ..a2a.types import (
    Artifact,
    ArtifactChanged,
    JsonObject,
    Message,
    Part,
    Role,
    StatusChanged,
    Task,
    TaskState,
    TaskStatus,
    new_id,
    now,
)
from ..awaited import refuses_bool
from ..daemon.dispatch.responder import facts_of
from ..daemon.logs import log
from ..daemon.operations.identity import Identity
from ..errors.codes import row_of
from ..errors.exceptions import FailureError
from ..errors.failures import Failure
from ..errors.wire import encode_error
from ..lazy import anyio
from .live_task import LiveTask
from .steps import Retry, StepLog

if TYPE_CHECKING:
    from .editor import Editor


class RequestContext(msgspec.Struct, frozen=True):
    """The request that an executor works on.

    `message` is the caller's message; in `resume` the message whose execution was cut off; None in `cancel`. `task` is the
    task when its execution began, with this message in its history. `metadata` is the request's own. `extensions` are those
    that the caller named, `accepted_output_modes` the media types that it accepts (None: any). `identity` is the caller, None
    without accepted credentials. `editor` is the caller's editor if the caller speaks the Agent Client Protocol, else None.
    `checked` is the value that the executor's own `check` returned for this message.

    `service_params` are the call's `serviceParams` with keys in lower case. They may hold credentials: don't log them. They
    are empty if another daemon took the call.
    """

    task: Task
    message: Message | None = None
    metadata: JsonObject | None = None
    accepted_output_modes: tuple[str, ...] | None = None
    extensions: tuple[str, ...] = ()
    identity: Identity | None = None
    service_params: Mapping[str, str] = {}
    checked: Any = None  # the executor's own
    editor: Editor | None = None

    @property
    def text(self) -> str:
        """The message's text parts, joined by newlines; empty if there are none."""
        parts = self.message.parts if self.message is not None else ()
        return "\n".join(part.text for part in parts if part.text is not None)


@runtime_checkable
class AgentExecutor(Protocol):
    """Does an agent's work. One object serves all tasks, on the event loop, and must not block."""

    async def execute(self, context: RequestContext, events: TaskEvents) -> None:
        """Work on a task until it ends or needs its caller.

        Called for every message; the executions of one task run one at a time. When it returns, the task must have ended
        (`events.complete`, `fail`, `reject`, `cancel`) or wait for its caller (`require_input`, `require_auth`), else the task
        fails. The next message of the caller calls it again: nothing is kept in memory meanwhile.

        The task fails as well if this raises. The caller then reads the code, text and details of a declared `OperationError`,
        and nothing of any other exception.

        An agent may answer without a task instead: `events.reply`, before any other event.

        It is cancelled, by the event loop's own exception, when the task is cancelled and when the daemon ends.
        """
        ...


Execute: TypeAlias = "Callable[[RequestContext, TaskEvents], Coroutine[Any, Any, None]]"


@runtime_checkable
class SupportsCancel(Protocol):
    """An executor whose tasks can be cancelled. Without it a caller that cancels a task gets −32002."""

    async def cancel(self, context: RequestContext, events: TaskEvents) -> None:
        """Prepare for the cancellation of a task, before its execution is cancelled.

        It may end the task itself; else the task becomes canceled. If no daemon works on the task, the daemon that was asked
        to cancel it makes this call. Raises `NotCancelable` to refuse: the caller gets −32002.
        """
        ...


@runtime_checkable
class SupportsResume(Protocol):
    """An executor that can continue a task after its daemon has ended. Without it such tasks fail."""

    async def resume(self, context: RequestContext, events: TaskEvents) -> None:
        """Continue a task whose daemon ended, or was taken for dead, while it worked on the task. The rules are those of
        `execute`.

        `context.message` is the message whose execution was cut off, perhaps before `execute` was called. Later messages are
        executed afterwards, in their order.
        """
        ...


@runtime_checkable
class SupportsCheck(Protocol):
    """An executor that checks messages before they have a task."""

    def check(self, context: RequestContext) -> object:
        """Check a message. Raises a declared error, or `FailureError`, to refuse it. Must not block.

        The return value is `checked` in the context of the execution, so that a message is read only once.
        """
        ...


async def execute_again(executor: AgentExecutor, context: RequestContext, events: TaskEvents) -> None:
    """Resume a task of an agent with steps: those that are stored are not run again."""
    if context.message is None:  # it was cut off behind a question, when its steps had left the task
        log.warning("task.orphaned", task=context.task.id)
        return await events.fail(ORPHANED_TEXT)
    await executor.execute(context, events)


UNFINISHED_TEXT: Final = "The agent has left its task without a final state."
AGENT_FAILED_TEXT: Final = "The agent has failed."
ORPHANED_TEXT: Final = "The process that worked on this task has ended."


def fail_task(live: LiveTask, *parts: Part, cut_off: bool = False) -> None:
    """End a task as failed, with a message for its caller; `cut_off` is that of `StatusChanged`. Raises as `LiveTask.publish`."""
    live.publish(StatusChanged(TaskStatus(TaskState.FAILED, agent_message(live, parts), now()), cut_off=cut_off))


def agent_message(live: LiveTask, parts: tuple[Part, ...]) -> Message:
    """A message of the agent about its task."""
    return Message(new_id(), Role.AGENT, parts, context_id=live.context_id, task_id=live.id)


def note_failed(task_id: str, failure: Failure) -> None:
    """Log that a task ends by this failure, which its agent declares."""
    row = row_of(failure)
    if log.is_enabled_for(row.log_level):
        fields: dict[str, object] = {"task": task_id, "code": row.code, "failure": row.protocol_code}
        log.record(row.log_level, "task.failed", fields | facts_of(failure))


def failure_parts(failure: Failure) -> tuple[Part, ...]:
    """A failure as text for people, and as its JSON-RPC error object for programs."""
    error = msgspec.json.decode(encode_error(failure))
    return (Part(text=error["message"]), Part(data=error))


T = TypeVar("T")
Ts = TypeVarTuple("Ts")

Content: TypeAlias = str | Part | Sequence[Part]
"""Text, or at least one part."""

MAX_UNCOMMITTED: Final = 512
"""Events that an executor may be ahead of the store before it waits."""

MAX_SLEEP_SECONDS: Final = 1e9
"""Some thirty years."""

WATCHER_WAIT_SECONDS: Final = 0.25
"""How long an executor waits for watchers that are far behind, before it may go twice as far."""

_TOO_DEEP: Final = f"JSON is nested at most {MAX_JSON_DEPTH} levels deep"


@final
class TaskEvents:
    """Publishes the events of a task. One object per execution, to be used on its event loop until the execution ends.

    The methods raise `InvalidStateTransition` if the task's state forbids the event. A task that has ended takes no event. They
    raise `FailureError(Overloaded)` if the daemon has no memory for the event. They raise `TypeError` for content that is not
    text or parts, and for metadata that is not a JSON object.

    They wait while the executor is 512 events ahead of the store. They also wait for readers of a stream that are far behind,
    0.25 s each time that 4, 8, 16 and 32 MiB of events are buffered for them.
    """

    __slots__ = ("_answer", "_live", "_steps", "ended_task")

    def __init__(
        self, live: LiveTask, answer: Callable[[Message], None] | None = None, steps: StepLog | None = None
    ) -> None:
        self._live = live
        self._steps = steps
        self._answer = answer
        self.ended_task = False

    @property
    def task(self) -> Task:
        """The task as it is now."""
        return self._live.task()

    @property
    def ended(self) -> bool:
        """Whether the task is completed, failed, rejected or canceled."""
        return self._live.ended

    async def working(self, content: Content | None = None, *, metadata: JsonObject | None = None) -> None:
        """Report progress: give the task the state `working`."""
        await self.status(TaskState.WORKING, content, metadata=metadata)

    async def require_input(self, content: Content | None = None, *, metadata: JsonObject | None = None) -> None:
        """Let the task wait for another message of its caller."""
        await self.status(TaskState.INPUT_REQUIRED, content, metadata=metadata)

    async def require_auth(self, content: Content | None = None, *, metadata: JsonObject | None = None) -> None:
        """Let the task wait until its caller has authorised something."""
        await self.status(TaskState.AUTH_REQUIRED, content, metadata=metadata)

    async def complete(self, content: Content | None = None, *, metadata: JsonObject | None = None) -> None:
        """End the task with success."""
        await self.status(TaskState.COMPLETED, content, metadata=metadata)

    async def fail(self, content: Content | None = None, *, metadata: JsonObject | None = None) -> None:
        """End the task as failed."""
        await self.status(TaskState.FAILED, content, metadata=metadata)

    async def reject(self, content: Content | None = None, *, metadata: JsonObject | None = None) -> None:
        """End the task because the agent does not accept it."""
        await self.status(TaskState.REJECTED, content, metadata=metadata)

    async def cancel(self, content: Content | None = None, *, metadata: JsonObject | None = None) -> None:
        """End the task as canceled."""
        await self.status(TaskState.CANCELED, content, metadata=metadata)

    async def status(
        self, state: TaskState, content: Content | None = None, *, metadata: JsonObject | None = None
    ) -> None:
        """Give the task a new status, with a message for its caller. The state may stay the same."""
        await self._change_status(state, content, metadata)

    async def _change_status(
        self, state: TaskState, content: Content | None, metadata: JsonObject | None, asks: str = ""
    ) -> None:
        if not isinstance(state, TaskState):
            raise TypeError(f"the state is a member of TaskState, such as TaskState.WORKING, not {state!r}")
        self._begin()
        if metadata is not None:
            _check(metadata)
        message = None if content is None else agent_message(self._live, _parts(content))
        self._live.publish(StatusChanged(TaskStatus(state, message, now()), metadata, asks=asks), limited=True)
        self.ended_task = self._live.ended
        if self._live.pending or self._live.buffer is not None:
            await self._apply_backpressure()

    async def artifact(
        self,
        content: Content,
        *,
        artifact_id: str | None = None,
        name: str | None = None,
        description: str | None = None,
        append: bool = False,
        last_chunk: bool = False,
        metadata: JsonObject | None = None,
    ) -> str:
        """Publish a part of the result. Returns the artifact's id.

        With `append` the parts are added to the artifact of that id, which is created if there is none. Without it they
        replace its parts. `last_chunk` tells the caller that this was the last part.
        """
        self._begin()
        identity = artifact_id or new_id()
        _check(metadata, identity, name, description)
        artifact = Artifact(identity, _parts(content), name, description, metadata)
        self._live.publish(ArtifactChanged(artifact, append, last_chunk), limited=True)
        if self._live.pending or self._live.buffer is not None:
            await self._apply_backpressure()
        return identity

    @overload
    async def step(
        self,
        name: str,
        call: Callable[[*Ts], Coroutine[Any, Any, T]],
        /,
        *args: *Ts,
        returns: object = UNSET,
        retry: Retry | None = None,
    ) -> T: ...

    @overload
    async def step(
        self, name: str, call: Callable[[*Ts], T], /, *args: *Ts, returns: object = UNSET, retry: Retry | None = None
    ) -> T: ...

    @refuses_bool
    async def step(
        self, name: str, call: Callable[[*Ts], Any], /, *args: *Ts, returns: object = UNSET, retry: Retry | None = None
    ) -> Any:
        """Return what `call(*args)` returns, and store that before. An execution that is resumed after a crash gets the stored
        result, and `call` is not called again. For an agent that is declared with `steps=True`.

        `call` is a coroutine function, or a plain function, which runs in a thread; a thread that is cancelled runs on. A crash
        before the result is stored repeats the step, so its effects happen at least once. An exception is not stored: it goes
        to the executor, which may try the name again. With `retry` it does so only after the last attempt. The number of failed
        attempts and the time of the next are stored, so that a crash costs one attempt at most.

        A `name` of 1 to 200 characters stands for one step of one execution. The result is decoded from JSON to the type that
        `call` is annotated to return, or to `returns`; without either it is plain JSON. It is so the first time, too. At most
        1 MiB is stored of a step, 8 MiB of an execution.

        Raises `StepError`, which names the step, for a name that is taken, a result that is not of the type, is not JSON or is
        too large; `InvalidStateTransition` if the task has ended; `FailureError` and `TaskConflict` if it is lost to this
        daemon.
        """
        steps = self._steps_of_execution()
        self._begin()
        return await steps.run(name, call, args, returns, retry)

    async def sleep_until(self, name: str, moment: datetime) -> None:
        """Return at this moment, which must have an offset. Until then the task has no execution: `execute` is cancelled, and is
        called again at that time, when the steps before return what they have stored. For an agent that is declared with
        `steps=True`.

        The moment is stored under the `name`, as a step is: that of a later call does not count. Some daemon on the store goes on
        with the task, also if this one has ended. One that has passed is no wait. Raises as `step`, and `ValueError` for a moment
        without an offset.
        """
        if not isinstance(moment, datetime) or moment.utcoffset() is None:
            raise ValueError("the moment is a datetime with an offset, such as datetime.now(UTC) + timedelta(hours=1)")
        await self._sleep(name, moment.timestamp())

    async def sleep_for(self, name: str, seconds: float) -> None:
        """Do as `sleep_until` with a moment that is so many seconds after the first call."""
        if not (isinstance(seconds, int | float) and 0 <= seconds < MAX_SLEEP_SECONDS):
            raise ValueError(f"seconds is a number from 0 and below {MAX_SLEEP_SECONDS:g}")
        await self._sleep(name, time.time() + seconds)

    async def _sleep(self, name: str, due: float) -> None:
        steps = self._steps_of_execution()
        self._begin()
        await steps.sleep(name, due)

    async def ask(self, name: str, content: Content, *, metadata: JsonObject | None = None) -> Message:
        """Ask the caller, and return the answer: the next message of the task. For an agent that is declared with `steps=True`.

        The task waits for its caller as with `require_input`, and `execute` is cancelled. The answer calls it again, from its
        beginning and with the `context` of the first message, but the `editor` and the `service_params` of the answer: the steps
        before return what they have stored, and `ask` the answer. The `name` stands for the question, as for a step. Raises as
        `step`.
        """
        steps = self._steps_of_execution()
        self._begin()
        return await steps.ask(name, lambda: self._change_status(TaskState.INPUT_REQUIRED, content, metadata, name))

    def _steps_of_execution(self) -> StepLog:
        if self._steps is None:
            raise RuntimeError("steps are for `execute` of an agent that is declared with steps=True")
        return self._steps

    async def reply(self, content: Content) -> None:
        """Answer a message that names no task, without a task.

        If the sender does not wait for the answer, there is a task already, and this completes it. Raises
        `MisplacedReplyError` after any other event, after another reply, for a message to a task, and if the agent is not
        declared with `replies_without_task=True`.
        """
        answer, self._answer = self._answer, None
        if answer is None:
            raise MisplacedReplyError(
                "only an agent that is declared with replies_without_task=True may reply: once, before any event, to a"
                " message that names no task; others `await events.complete(…)`"
            )
        if self._live.generation:
            return await self.complete(content)
        answer(Message(new_id(), Role.AGENT, _parts(content), context_id=self._live.context_id))

    def _begin(self) -> None:
        """An event comes: there is a task from now on."""
        self._answer = None
        if not self._live.generation:
            self._live.ensure_created()

    async def _apply_backpressure(self) -> None:
        live = self._live
        while len(live.pending) >= MAX_UNCOMMITTED and live.lost is None:
            await live.wait_for_change()
        buffer = live.buffer
        if buffer is None or not buffer.congested:
            return
        with anyio.move_on_after(WATCHER_WAIT_SECONDS):
            while buffer.congested and live.lost is None:
                await live.wait_for_change()
        if buffer.congested:
            buffer.raise_backpressure_limit()


async def wait_for_client(events: TaskEvents, *, rests: bool = False) -> None:
    """Wait until the store has another event of the task, such as an answer, or the task is lost to this daemon.

    Meanwhile the execution does not count towards `--max-runs`. With `rests` the end of the daemon does not wait for it either.
    """
    live = events._live  # executors have no use for it
    live.asking += 1
    live.resting += rests
    try:
        await live.wait_for_change()
    finally:
        live.asking -= 1
        live.resting -= rests


def was_overtaken(events: TaskEvents, fault: BaseException | None) -> bool:
    """Whether this fault only says that somebody else had ended the task: a cancellation, or the execution that was to be
    cancelled; or that the task is lost to this daemon. The agent can't prevent that."""
    if events._live.lost is not None and issubclass(type(fault), (FailureError, TaskConflict)):
        return True
    overtaken = issubclass(type(fault), InvalidStateTransition)  # `isinstance` asks the object itself too
    return overtaken and events.ended and not events.ended_task


def _parts(content: Content) -> tuple[Part, ...]:
    """The parts of what an executor gave, which may be of any type at run time. Raises `TypeError`."""
    if isinstance(content, str):
        return (Part(text=content),)
    try:
        parts = (content,) if isinstance(content, Part) else tuple(content)
    except TypeError:
        parts = ()
    if not (parts and all(map(_is_part, parts))):
        raise TypeError("content is text, or at least one Part, each with exactly one of text, raw, url and data")
    return parts


def _is_part(part: object) -> bool:
    """Whether it is a part with exactly one content (A2A 1.0 section 4.1.6). Raises `TypeError` for members of wrong types."""
    if not isinstance(part, Part):
        return False
    _check(part.metadata, part.text, part.url, part.filename, part.media_type)
    if not is_within_max_depth(part.data):
        raise TypeError(_TOO_DEEP)
    return part.content_count == 1 and isinstance(part.raw, bytes | None)


def _check(metadata: object, *strings: object) -> None:
    """Raises `TypeError` for metadata that are not a JSON object, and for strings that are not `str`; each may be None."""
    for string in strings:
        if string is not None and not isinstance(string, str):
            raise TypeError("texts, names, URLs and media types are of the type str")
    if metadata is not None:
        if not isinstance(metadata, dict):
            raise TypeError(f"metadata is a dict, not {type(metadata).__name__}")
        if not is_within_max_depth(metadata):
            raise TypeError(_TOO_DEEP)
        msgspec.json.encode(metadata)
