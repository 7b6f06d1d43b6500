"""Runs the executor: the executions of one task one after the other, those of different tasks side by side.

Whatever an executor does, its task gets a final state or waits for its caller: none stays `working` after its execution. The
task's events alone tell the outcome of a message, so it does not matter which daemon executed it.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from contextlib import nullcontext
from contextvars import Context as Variables
from contextvars import copy_context
from functools import partial
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any, Final, final, get_args

import msgspec

from ..a2a.errors import NotCancelable, keeps_on, not_cancelable_any_more
from ..a2a.task import TaskDraft
from ..a2a.types import INACTIVE, CallFacts, ExecutionBegun, Message, Part, Task, TaskState, WaitingMessage
from ..change_signal import ChangeSignal
from ..daemon.dispatch.execution import APP_LOOP, Raised, attempt, attempt_here, attempt_now, declared
from ..daemon.dispatch.task_pool import HandlerLoop, TaskPool, in_context
from ..daemon.logs import log
from ..daemon.logs.logger import BOUND, LoggedTask
from ..daemon.process.loop_watch import LoopWatch
from ..daemon.tracing import TASK_STATE
from ..errors.codes import ACP_RESERVED
from ..errors.exceptions import FailureError, OperationError
from ..errors.failures import Cancelled, DomainFailure, Failure, Internal, Overloaded
from ..errors.redaction.safe_call import type_name
from ..lazy import anyio
from .editor import EditorAbility, EditorUnavailableError
from .executor import (
    AGENT_FAILED_TEXT,
    ORPHANED_TEXT,
    UNFINISHED_TEXT,
    AgentExecutor,
    Execute,
    RequestContext,
    SupportsCancel,
    SupportsCheck,
    SupportsResume,
    TaskEvents,
    execute_again,
    fail_task,
    failure_parts,
    note_failed,
    was_overtaken,
)
from .live_task import LiveTask, TaskCache, raise_if_lost, wait_committed
from .steps import StepLog, StepThreads
from .stores.failures import log_failure
from .stores.interface import ClaimedTask, StoredTask, StoreError

if TYPE_CHECKING:
    from ..daemon.tracing import Origin, Tracing


# What an exception of an agent's own code may tell its callers. Logs nothing: its users know the event.


def declared_failure(exc: BaseException) -> Failure | None:
    """The failure that an exception of an executor or an interceptor stands for.

    None for an exception that callers may learn nothing of, also where the facts of a declared error are not of their types.
    """
    if issubclass(type(exc), FailureError):  # `isinstance` asks the class, which may raise
        assert isinstance(exc, FailureError)
        return exc.failure
    if issubclass(type(exc), EditorUnavailableError):
        assert isinstance(exc, EditorUnavailableError)
        if exc.ability in get_args(EditorAbility):
            text = f"This needs an editor that offers {exc.ability}"
            return DomainFailure("EDITOR_UNAVAILABLE", text, http_status=501)
    if issubclass(type(exc), OperationError):
        assert isinstance(exc, OperationError)
        return declared(exc)
    return None


_RESERVED: Final = (
    "ACP fixes what this number means, so editors get another; to have the user sign in: events.require_auth"
)


@final
class Submission:
    """A message of a task from when it was submitted until its execution is over; or one that was cut off and `resumes`.

    `context` is what its executor is told, None where it was submitted before, and `call` what is stored with it. `key` tells
    it from all other messages where other daemons see it, however often it is submitted. `position` is its place in the task's
    history, None before; `fault` is why it never comes there, `reply` the agent's answer where there is no task. `awaited` says
    that the sender waits for what becomes of it, `done` that this daemon has executed it, `remote` that another one is to, and
    `delegated` that it need not be left to that one any more. `live.notify` is called after each change.

    `may_reply` says that its executor may answer without a task. `started` is the task's generation when its execution began;
    `executing` says that it runs now, `interrupted` that this was cancelled, and `asleep` that it was so until a time that is
    stored. It runs in the context variables `variables`.
    `origin` is the span in which it was asked for.
    """

    def __init__(
        self,
        live: LiveTask,
        key: str = "",
        context: RequestContext | None = None,
        call: CallFacts | None = None,
        *,
        remote: bool = False,
        may_reply: bool = False,
        resumes: bool = False,
    ) -> None:
        self.live = live
        self.key = key
        self.context = context
        self.call = call
        self.remote = remote
        self.delegated = not remote
        self.may_reply = may_reply
        self.resumes = resumes
        self.fault: BaseException | None = None
        self.reply: Message | None = None
        self.awaited = self.done = self.executing = self.interrupted = self.asleep = self._is_begun = False
        self.started: int | None = None
        self.origin: Origin = None
        self.variables: Variables | None = None
        self._creates_task = not live.generation
        self._position: int | None = None
        self._accepted_generation: int | None = None
        self._stop: tuple[int, Task | None] | None = None

    # -- its message -------------------------------------------------------------------------------------------

    @property
    def message(self) -> Message:
        assert self.context is not None and self.context.message is not None, "it was submitted with a message"
        return self.context.message

    @property
    def position(self) -> int | None:
        return 0 if self._creates_task and self.live.generation else self._position

    def accept(self, position: int, *, begun: bool = False) -> None:
        """The message is at this place of the history, as of the task's present generation. `begun`: so is that it begins."""
        if self.live.lost is None:
            self._is_begun = self._is_begun or begun
            self._position, self._accepted_generation = position, self.live.generation
            self.live.notify()

    def publish(self, *, begun: bool) -> None:
        """Publish the message: from then on it is a part of the task, whatever becomes of its execution. `begun` says that no
        other one comes before it. Raises what `LiveTask.publish` raises.
        """
        live = self.live
        assert self.call is not None, "only what is new is published"
        self._is_begun = begun
        if live.generation:
            self.accept(live.add_message(self.message, self.call, begun=begun))
        else:
            live.ensure_created(self.call, begun=begun)

    @property
    def stored(self) -> bool:
        """Whether the store has the message in the task's history."""
        generation = 1 if self._creates_task and self.live.generation else self._accepted_generation
        return generation is not None and self.live.committed >= generation

    # -- its execution -----------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Publish that it begins, unless that is known. The executor may run when the store has that."""
        live = self.live
        if live.generation and not self._is_begun:
            if not self.resumes:
                live.go_on()
            position = self.position
            live.publish(ExecutionBegun(-1 if position is None else position))
        self.started = live.generation

    def answer(self, reply: Message) -> None:
        """The agent answers it without a task."""
        self.reply = reply
        self.live.notify()

    def conclude(self, events: TaskEvents, fault: BaseException | None, returned: object = None) -> None:
        """Fail the task where the executor raised this `fault`, or left it neither ended nor waiting for its caller."""
        live = self.live
        if live.ended or self.reply is not None or self.interrupted:
            if fault is not None and not was_overtaken(events, fault):
                log.error("agent.failed", task=live.id, exc=fault)
            return
        live.ensure_created(self.call)
        if fault is not None:
            of_editor = self.context is not None and self.context.editor is not None
            fail_task(live, *_parts_of(fault, live, of_editor=of_editor))
        elif live.state not in INACTIVE and not self._was_answered:
            log.error("agent.unfinished", task=live.id, state=live.state.name.lower(), hint=_way_to_end(returned))
            fail_task(live, Part(text=UNFINISHED_TEXT))

    @property
    def _was_answered(self) -> bool:
        """Whether it has asked, and the answer waits for it to be over: it need not stop its task again."""
        return self.started is not None and self.live.stop_generation > self.started and bool(self.live.waiting)

    # -- its sender --------------------------------------------------------------------------------------------

    def watch(self) -> None:
        """Note the task as this message stops it, until `unwatch`: others may go on with it before its sender sees that."""
        self.live.stop_watches.append(self._note_stop)
        if self.live.stop_generation:
            self._note_stop()

    def unwatch(self) -> None:
        """Undo `watch`."""
        self.live.stop_watches.remove(self._note_stop)

    def _note_stop(self) -> None:
        live = self.live
        if self._has_stopped and (self._stop is None or live.turn == self._known_position):
            self._stop = (live.stop_generation, live.stopped_task)

    @property
    def _known_position(self) -> int | None:
        """The place of the message, also where another daemon has published it just now."""
        position = self.position
        return self.live.received.get(self.key) if position is None and self.remote else position

    @property
    def began(self) -> int | None:
        """The task's generation when the work on the message began, None before. Where the work was over before the task was
        loaded: that at which the message was found."""
        position, live = self._known_position, self.live
        if position is None:
            return None
        begun = live.begun.get(position)
        return self._accepted_generation if begun is None and not live.waits(position) else begun

    @property
    def is_over(self) -> bool:
        """Whether the message is in the history, and its execution is over."""
        return self.position is not None and not self.live.waits(self.position)

    @property
    def _has_stopped(self) -> bool:
        """Whether the task has stopped since the work on the message began."""
        start = self.began
        return start is not None and start < self.live.stop_generation

    @property
    def _stopped(self) -> bool:
        """Whether the work on the message has stopped the task, and the store has that."""
        if self._stop is not None:
            return self._stop[0] <= self.live.committed
        return self._has_stopped and self.live.stop_generation <= self.live.committed

    @property
    def settled(self) -> bool:
        """Whether the sender can be answered: the message has stopped the task, or nothing more comes of it and the task has
        stopped, whatever by."""
        live = self.live
        if self.fault is not None or live.lost is not None or self.reply is not None:
            return True
        if live.committed < live.generation:
            return bool(live.stop_generation) and self._stopped
        if self.done:
            return True
        if live.stop_generation and self._stopped:
            return True
        position = self.position
        return position is not None and live.state in INACTIVE and not live.waits(position)

    async def wait_accepted(self) -> None:
        """Wait until the message was published. Raises what it came to where it never will be."""
        await self._wait_until(lambda: self.position is not None)

    async def wait_delegated(self) -> None:
        """Wait until the store has the message where it is left to another daemon. Raises as `wait_accepted`."""
        await self._wait_until(lambda: self.delegated)

    async def _wait_until(self, is_so: Callable[[], bool]) -> None:
        while not (is_so() or self.fault is not None or self.live.lost is not None):
            await self.live.wait_for_change()
        self._raise_fault()

    async def wait_stored(self) -> Task:
        """The task as it is now, once the store has it and what is to be done for it. Raises as `wait_accepted`."""
        if not self.delegated:
            await self.wait_delegated()
        return await wait_committed(self.live)

    async def wait_settled(self, let_go: Callable[[], bool] = lambda: False) -> Task | None:
        """Wait until the sender can be answered; no longer than the store has the message where `let_go()`.

        Returns the task as it stopped, even if work on the next message has begun by now; None where this one did not stop it,
        as when the task ended before its turn. Raises `FailureError` or `TaskConflict` where the message was refused or the
        task is lost.
        """
        live = self.live
        while not (self.settled or (let_go() and self.stored)):
            await live.wait_for_change()
        if self._stop is not None and self._stopped:
            return self._stop[1]
        if self.fault is not None or live.lost is not None:
            self._raise_fault()
        return live.stopped_task if live.stop_generation and self._stopped else None

    def _raise_fault(self) -> None:
        if self.fault is not None:
            raise self.fault
        if self.live.lost is not None:
            raise_if_lost(self.live)


def _way_to_end(returned: object) -> str:
    """Name what the author of an executor probably forgot, if it left its task with this result."""
    if isinstance(returned, Coroutine):
        returned.close()
        return "execute returned a coroutine: is an `await` missing?"
    if returned is None:
        return "end with `await events.complete(…)`, or with another status that ends or waits; is an `await` missing?"
    return f"execute returned {type(returned).__name__}, which is not sent: `await events.complete(…)`"


def _parts_of(fault: BaseException, live: LiveTask, *, of_editor: bool) -> tuple[Part, ...]:
    """Return the facts of an executor's exception for the caller: those of a declared error, else none."""
    failure = declared_failure(fault)
    if failure is not None:
        if of_editor and isinstance(failure, DomainFailure) and failure.number in ACP_RESERVED:
            log.warning("error.number_reserved", task=live.id, code=failure.code, number=failure.number, hint=_RESERVED)
        note_failed(live.id, failure)
        return failure_parts(failure)
    log.error("agent.failed", task=live.id, exc=fault)
    return (Part(text=AGENT_FAILED_TEXT),)


EXECUTE, RESUME = "agent.execute", "agent.resume"
"""What the log calls an execution, and one that goes on with what was cut off."""

CANCEL_SECONDS: Final = 30.0
"""How long an executor's `cancel` may take, and another daemon to cancel a task of its own."""

MAX_EXECUTIONS: Final = 1024
"""Executions that may run or wait in the queues of their tasks; beyond it messages are refused as overload."""

MAX_WAITING: Final = 256
"""Messages of one task that may wait for their turn; beyond it they are refused as overload."""

UNFINISHED: Final = "unfinished"
"""The fault of an executor that left its task neither ended nor waiting for its caller."""


MAX_CLOCK_WAIT_SECONDS: Final = 60.0
"""How often the clock is read, which may be set, while tasks sleep."""

POSTPONED_SECONDS: Final = 1.0
"""How much longer a task sleeps while there are as many executions as there may be."""


@final
class Alarms:
    """The tasks whose executions sleep, with the times at which they go on, in seconds since 1970. `wake(task_id)` is called
    then, and `count(times)` for each more, or with -1 for each less. They are in the store, too; a task that is taken over comes
    into the alarms of its new owner."""

    def __init__(self, wake: Callable[[str], None], count: Callable[[int], None]) -> None:
        self._wake = wake
        self._count = count
        self._times: dict[str, float] = {}
        self._heap: list[tuple[float, str]] = []
        self._changed = ChangeSignal()

    def __contains__(self, task_id: str) -> bool:
        return task_id in self._times

    def set(self, task_id: str, due: float) -> None:
        """Have the task woken at this time, and at no other."""
        if task_id not in self._times:
            self._count(1)
        self._times[task_id] = due
        heappush(self._heap, (due, task_id))
        self._changed.notify()

    def clear(self, task_id: str) -> None:
        """Don't wake this task any more."""
        if self._times.pop(task_id, None) is None:
            return
        self._count(-1)
        if len(self._heap) > 2 * len(self._times):
            self._heap = [(due, each) for each, due in self._times.items()]
            heapify(self._heap)

    async def run(self) -> None:
        """Run until cancelled."""
        while True:
            seconds = self._wake_due()
            with anyio.move_on_after(seconds):
                await self._changed.wait()

    def _wake_due(self) -> float | None:
        """Returns in how many seconds to look again."""
        while self._heap:
            due, task_id = self._heap[0]
            if (left := due - time.time()) > 0:
                return min(left, MAX_CLOCK_WAIT_SECONDS)
            heappop(self._heap)
            if self._times.get(task_id) == due:
                del self._times[task_id]
                self._count(-1)
                self._wake(task_id)
        return None


class _Work(msgspec.Struct, eq=False):
    """The executions of one task. Each is a job of its own for the pool of tasks: one that was left with a time limit must not
    run the next."""

    live: LiveTask
    queue: deque[Submission]
    scope: anyio.CancelScope | None = None
    ended_by: Failure | None = None

    @property
    def name(self) -> str:
        return EXECUTE

    @property
    def bound(self) -> LoggedTask:
        return LoggedTask(self.live.id)


@final
class Runner:
    """Executes the messages of each task that this daemon owns, one after the other, in the order of its history.

    A message is published when it comes; its execution begins when the store has that it begins. With `replies_without_task` a
    new task is published with the executor's first event only. With `steps` what was cut off is executed again, and its steps
    that are stored are not run. `name` is that of the agent, for spans. `count` executions run or are queued. `on_idle()` is
    called when none is, `on_done()` when those of a task are over.
    """

    def __init__(
        self,
        executor: AgentExecutor,
        cache: TaskCache,
        *,
        replies_without_task: bool = False,
        steps: bool = False,
        tracing: Tracing | None = None,
        name: str = "",
    ) -> None:
        self._execute = executor.execute
        self._steps = steps
        self._check = executor.check if isinstance(executor, SupportsCheck) else None
        self._cancel = executor.cancel if isinstance(executor, SupportsCancel) else None
        self._resume: Execute | None = None
        if isinstance(executor, SupportsResume):
            self._resume = executor.resume
        elif steps:
            self._resume = partial(execute_again, executor)
        self._tracing = tracing
        self._name = name
        self.replies_without_task: Final = replies_without_task
        self.cache: Final = cache
        self._group: anyio.abc.TaskGroup | None = None
        self._threads: StepThreads
        self._pool: Final[TaskPool[_Work]] = TaskPool(self._run_next, lambda: None)
        self._loop = HandlerLoop(LoopWatch(None), lambda: None)
        self._variables = Variables()  # those of `start`: a stored message has no caller here
        self._works: dict[LiveTask, _Work] = {}
        self._claimed: dict[str, int] = {}
        """The generations at which tasks have begun with their claim, until their execution is queued."""
        self.count = 0
        self._asleep: dict[LiveTask, _Work] = {}
        self._waking = 0
        self._alarms: Final = Alarms(self._wake, cache.count_alarm)
        self._executing: dict[str, ChangeSignal | None] = {}
        """The ids of the tasks that an executor works on, and what tells those who wait for one that it is over."""
        self._draining = False
        self.on_idle: Callable[[], None] | None = None
        self.on_done: Callable[[], None] | None = None

    @property
    def supports_resume(self) -> bool:
        """Whether the executor can continue what another daemon has begun."""
        return self._resume is not None

    @property
    def tasks(self) -> Sequence[LiveTask]:
        """The tasks that this daemon executes something for."""
        return [*self._works]

    @property
    def asking(self) -> int:
        """How many of the executions wait for their clients."""
        return sum(1 for live in self._works if live.asking)

    def start(self, group: anyio.abc.TaskGroup) -> None:
        """Run in this task group from now on."""
        self._group = group
        self._threads = StepThreads()
        self._loop = APP_LOOP.get() or self._loop
        self._variables = copy_context()
        self._pool.start(group)
        if self._steps:
            group.start_soon(self._alarms.run)

    @property
    def resting(self) -> int:
        """How many of them another daemon can go on with, or this one after its next start."""
        return sum(1 for live in self._works if live.resting)

    def spawn(self, work: Callable[..., Coroutine[Any, Any, None]], *args: Any) -> None:
        """Run this in the task group. A fault in the work for one task is logged, and does not end that for others."""
        if self._group is None:
            raise RuntimeError("an agent runs in a daemon")
        self._group.start_soon(self._attempt, work, args)

    @staticmethod
    async def _attempt(work: Callable[..., Coroutine[Any, Any, None]], args: tuple[Any, ...]) -> None:
        try:
            await work(*args)
        except Exception as exc:  # noqa: BLE001 - see `spawn`; what the agent's own code raises is caught where it is called
            log.error("agent.failed", exc=exc)

    def drain(self) -> None:
        """Leave the messages that no caller of this daemon waits for to other daemons, or to a later one."""
        self._draining = True
        for work in [*self._works.values()]:
            self._rouse(work)

    def check(self, live: LiveTask, context: RequestContext) -> RequestContext:
        """Return the context with what the executor's `check` returns for its message. Raises its refusal, and
        `FailureError(Overloaded)`."""
        if self._check is not None:
            context = self._checked(context)
        if live.generation and context.message is not None:
            self.cache.check_memory(context.message)
        return context

    def _checked(self, context: RequestContext) -> RequestContext:
        """Raises `FailureError` where the executor refuses the message."""
        check = self._check
        if check is None:
            return context
        checked = attempt_now(lambda: check(context), step="agent.check")
        if not isinstance(checked, Raised):
            return msgspec.structs.replace(context, checked=checked)
        failure = declared_failure(checked.exc)
        if failure is None:
            log.error("agent.failed", exc=checked.exc)
        raise FailureError(failure or Internal())

    def submit(
        self, live: LiveTask, context: RequestContext, *, key: str = "", at_once: bool = False, awaited: bool = False
    ) -> Submission:
        """Publish a message to a task that no other daemon works on, and have it executed. `at_once` publishes it also where the
        agent might answer without a task. `awaited`: the sender does nothing but wait for what becomes of it, so its execution
        begins before this returns, if none is before it.

        Raises what `check` raises; then nothing was published.
        """
        context = self.check(live, context)
        if self.active >= MAX_EXECUTIONS or len(live.waiting) >= MAX_WAITING:
            raise FailureError(Overloaded())
        may_reply = self.replies_without_task and not live.generation
        submission = self._new(live, context, self.call_of(context, key), copy_context(), key=key, may_reply=may_reply)
        submission.awaited = awaited
        work = self._works.get(live)
        if at_once or not may_reply:
            submission.publish(begun=work is None and not live.waiting)
        if work is None:
            self._start(live, deque((submission,)), now=awaited)
        else:
            work.queue.append(submission)
        return submission

    def receive(self, live: LiveTask, message: Message, call: CallFacts) -> Submission:
        """Submit a message that another daemon has left. Raises as `submit`."""
        context, tracing = context_of(live.task(), message, call), self._tracing
        with nullcontext() if tracing is None else tracing.resumed(tracing.origin_of(call.traceparent)):
            return self.submit(live, context, key=call.key)

    def call_of(self, context: RequestContext, key: str = "") -> CallFacts:
        """Return the facts that are stored with the message of the context."""
        tracing = self._tracing
        traceparent = "" if tracing is None else tracing.traceparent_of(tracing.origin())
        return CallFacts(
            context.metadata, context.accepted_output_modes, context.extensions, context.identity, key, traceparent
        )

    def find_unpublished(self, task_id: str) -> Submission | None:
        """Return what is executed for a new task that has no events yet: its agent may still reply without a task."""
        live = self.cache.find_unpublished(task_id)
        work = None if live is None else self._works.get(live)
        return work.queue[0] if work is not None and work.queue else None

    @property
    def begins_with_claim(self) -> bool:
        """Whether a message may begin before the executor has checked it here."""
        return self._check is None

    def begin_claimed(self, stored: StoredTask) -> ExecutionBegun | None:
        """Return the event by which the execution of a queued task's first message begins; None where something else is to be
        done for it first. Nobody here sees the task so before `take_claimed`. Any thread may call it."""
        draft = TaskDraft(stored.snapshot, stored.waiting)
        for logged in stored.later_events:
            draft.apply(logged.event)
        first = draft.waiting[0] if draft.waiting else None
        if first is None or first.begun or draft.asking is not None or draft.status.state in INACTIVE:
            return None
        self.cache.claiming.add(draft.id)
        return ExecutionBegun(first.position)

    def take_claimed(self, claimed: ClaimedTask) -> bool:
        """Go on with a task that came with its claim. False where it has to be loaded for that."""
        live = self.cache.take_claimed(claimed)
        if live is None:
            return False
        try:
            if claimed.begun:
                self._claimed[live.id] = claimed.begun
            self.go_on(live)
            if live not in self._works:
                self._claimed.pop(live.id, None)
        finally:
            self.cache.unpin(live)
        return True

    def _began_with_claim(self, live: LiveTask, waiting: WaitingMessage) -> bool:
        """Whether a message has begun with the claim, and so was not cut off."""
        generation = self._claimed.pop(live.id, None)
        return generation is not None and live.begun.get(waiting.position) == generation

    def go_on(self, live: LiveTask) -> None:
        """Do what is still to be done for a task that this daemon owns: resume, or fail, what was cut off; then execute the
        messages that wait. Where nothing is, the task is left to any daemon."""
        if live in self._works or live.remote or live.pending or live.lost is not None or live.ended:
            return
        queue: deque[Submission] = deque()
        if not live.waiting and live.state not in INACTIVE:
            self._queue_resumed(live, queue, None)
        if queue or self._next(live, queue) is not None:
            self._start(live, queue)
        else:
            live.settle()

    def _new(
        self,
        live: LiveTask,
        context: RequestContext,
        call: CallFacts,
        variables: Variables,
        *,
        key: str = "",
        may_reply: bool = False,
        resumes: bool = False,
    ) -> Submission:
        submission = Submission(live, key, context, call, may_reply=may_reply, resumes=resumes)
        submission.variables = variables
        bound = variables.run(BOUND.get)
        variables.run(BOUND.set, LoggedTask(live.id, bound.origin if isinstance(bound, LoggedTask) else bound))
        if self._tracing is not None:
            submission.origin = variables.run(self._tracing.origin)
        self.count += 1
        return submission

    def _start(self, live: LiveTask, queue: deque[Submission], *, now: bool = False) -> None:
        work = self._works[live] = _Work(live, queue)
        live.pins += 1
        live.busy = True
        if now:
            self._pool.begin(work, in_task=True)
        else:
            self._pool.submit(work)

    # -- one task ----------------------------------------------------------------------------------------------

    async def _run_next(self, work: _Work) -> None:
        """Run the next of the executions of one task, in the order of their messages."""
        live, queue = work.live, work.queue
        more, work.ended_by = False, None
        try:
            submission = self._next(live, queue)
            if submission is not None:
                more = await self._work_on(submission, queue)
        except Exception as exc:  # noqa: BLE001 - a fault of this program, which must not end the work for other tasks
            log.error("agent.failed", task=live.id, exc=exc)
        finally:
            if live.state in INACTIVE:  # it has asked, or ended, although it was told to sleep
                self._alarms.clear(live.id)
            is_asleep = self._steps and live.id in self._alarms
            if more:
                self._pool.submit(work)
            elif queue and is_asleep and not self._draining:
                self._asleep[live] = work
            else:
                self._leave(live, queue, done=not is_asleep)

    async def _work_on(self, submission: Submission, queue: deque[Submission]) -> bool:
        """Run an execution. Returns whether there is another one."""
        assert submission.variables is not None, "it is executed here"
        try:
            step = RESUME if submission.resumes else EXECUTE
            await in_context(self._perform(submission), submission.variables, self._loop, step)
        except Exception as exc:  # noqa: BLE001 - a fault of this program must not leave the task as if it were worked on
            submission.conclude(TaskEvents(submission.live), exc)
        except anyio.get_cancelled_exc_class():
            if not submission.interrupted:
                raise
        finally:
            self._remove_first(queue, done=not submission.asleep)
        return self._next(submission.live, queue) is not None

    def _leave(self, live: LiveTask, queue: deque[Submission], *, done: bool = True) -> None:
        """Nothing more is executed for this task by now."""
        while queue:
            self._remove_first(queue, done=done)
        del self._works[live]
        self._claimed.pop(live.id, None)
        live.busy = False
        live.settle()
        live.notify()
        if self.on_done is not None:
            self.on_done()
        if not self.count and self.on_idle is not None:
            self.on_idle()
        if not live.generation:  # its agent has replied: there is no task, although its sender may still need this
            self.cache.evict(live)
        self.cache.unpin(live)

    def _next(self, live: LiveTask, queue: deque[Submission]) -> Submission | None:
        """The execution that is next, also as the first of the queue. None where there is none for this daemon."""
        first = queue[0] if queue else None
        place = None if first is None else first.position
        if first is not None and (first.resumes or place is None):
            return first
        if live.lost is not None or not live.waiting or (self._steps and live.id in self._alarms):
            return None
        waiting = live.waiting[0]
        if not waiting.begun and self._draining and not any(each.awaited for each in queue):
            live.queue()
            return None
        if place == waiting.position:
            return first
        if waiting.begun and not self._began_with_claim(live, waiting):
            # by a daemon that is dead, or by this one before it lost the task
            self._queue_resumed(live, queue, waiting)
        else:
            self._queue_inherited(live, queue, waiting)
        return queue[0] if queue and queue[0] is not first else self._next(live, queue)

    def _queue_resumed(self, live: LiveTask, queue: deque[Submission], waiting: WaitingMessage | None) -> None:
        """Queue the continuation of what was cut off; fail the task where the executor has none."""
        if self._resume is None:
            log.warning("task.orphaned", task=live.id)
            return fail_task(live, Part(text=ORPHANED_TEXT), cut_off=True)
        submission = self._queue_stored(live, queue, waiting, resumes=True)
        log.info("task.resumed", task=live.id)
        if self._steps and waiting is not None and waiting.first is None:
            self._check_again(live, queue, submission)

    def _queue_inherited(self, live: LiveTask, queue: deque[Submission], waiting: WaitingMessage) -> None:
        """Queue the execution of a message that the task had when this daemon became its owner."""
        self._check_again(live, queue, self._queue_stored(live, queue, waiting, resumes=False))

    def _check_again(self, live: LiveTask, queue: deque[Submission], submission: Submission) -> None:
        """Have the executor check a stored message, which may be refused by now."""
        context, variables = submission.context, submission.variables
        assert context is not None and variables is not None, "it is executed here"
        try:
            submission.context = variables.run(self._checked, context)
        except FailureError as exc:
            self._remove_first(queue)
            if not isinstance(exc.failure, Internal):  # which is in the log
                note_failed(live.id, exc.failure)
            fail_task(live, *failure_parts(exc.failure))

    def _queue_stored(
        self, live: LiveTask, queue: deque[Submission], waiting: WaitingMessage | None, *, resumes: bool
    ) -> Submission:
        begun = waiting is not None and waiting.begun and not resumes
        call = CallFacts() if waiting is None else waiting.call
        context = context_of(live.task(), None if waiting is None else live.message(waiting.position), call)
        may_reply = self.replies_without_task and not resumes and live.generation == 1 + begun
        submission = self._new(live, context, call, self._variables.copy(), may_reply=may_reply, resumes=resumes)
        if self._tracing is not None:
            submission.origin = self._tracing.origin_of(call.traceparent)
        if waiting is not None:
            submission.accept(waiting.position, begun=begun)
        queue.appendleft(submission)
        return submission

    def _remove_first(self, queue: deque[Submission], *, done: bool = True) -> None:
        """Forget an execution; one that is not `done` goes on later."""
        submission = queue.popleft()
        submission.done = done
        self.count -= 1
        submission.live.notify()

    async def _perform(self, submission: Submission) -> None:
        live = submission.live
        if self._tracing is not None:
            self._tracing.resume(submission.origin)
        submission.begin()
        begun = submission.started or 0
        while (live.committed < begun or live.id in self._executing) and not (live.lost or live.ended):
            await (live.wait_for_change() if live.committed < begun else self._wait_executed(live.id))
        if live.lost is not None or live.ended:  # lost: another daemon goes on with it, or this one later
            return
        self._executing[live.id] = None
        try:
            if self._tracing is None:
                await self._run(submission)
            else:
                await self._run_traced(submission, self._tracing)
        finally:
            over = self._executing.pop(live.id)
            if over is not None:
                over.notify()

    async def _wait_executed(self, task_id: str) -> None:
        over = self._executing[task_id] = self._executing[task_id] or ChangeSignal()
        await over.wait()

    async def _run_traced(self, submission: Submission, tracing: Tracing) -> None:
        live = submission.live
        span = tracing.execution(self._name, live.id)
        span.enter()
        try:
            fault, unfinished = await self._run(submission)
            if fault is not None:
                span.record_error(declared_failure(fault) or type_name(fault))
            elif unfinished:
                span.record_error(UNFINISHED)
        finally:
            span.tell(TASK_STATE, live.state.name.lower())
            span.end()

    async def _run(self, submission: Submission) -> tuple[BaseException | None, bool]:
        """Have it executed. Returns what the executor raised, and whether it left its task unfinished."""
        live, context = submission.live, submission.context
        assert context is not None, "it is executed here"
        if context.task is not (task := live.task()):
            context = msgspec.structs.replace(context, task=task)
        first = live.waiting[0].first if live.waiting else None
        if first is not None:  # its message is the answer to a question of this execution
            begun_with = context_of(task, live.message(first.position), first.call)
            context = self._checked(
                msgspec.structs.replace(begun_with, editor=context.editor, service_params=context.service_params)
            )
        resume = self._resume if submission.resumes else None
        step, work = (EXECUTE, self._execute) if resume is None else (RESUME, resume)
        steps = StepLog(live, self._threads, partial(self._park, submission)) if self._steps else None
        events = TaskEvents(live, submission.answer if submission.may_reply else None, steps)
        submission.executing = True
        try:
            done = await attempt_here(lambda: work(context, events), step, self._pool.guard())
        finally:
            submission.executing = False
        before = live.state
        fault = done.exc if isinstance(done, Raised) else None
        submission.conclude(events, fault, None if fault is not None else done)
        return fault, live.state is not before

    # -- executions that sleep ---------------------------------------------------------------------------------

    def is_asleep(self, task_id: str) -> bool:
        """Whether the execution of this task has ended here, to go on at a time that is stored."""
        return task_id in self._alarms

    def _park(self, submission: Submission, due: float | None) -> None:
        """End an execution, which goes on at this time; without one when there is an answer."""
        if due is not None:
            submission.asleep = True
            self._alarms.set(submission.live.id, due)
        self._stop(submission.live)

    @property
    def active(self) -> int:
        """Executions that run or are queued, without those that wait for one that sleeps."""
        return self.count - sum(len(work.queue) for work in self._asleep.values()) if self._asleep else self.count

    def _wake(self, task_id: str) -> None:
        live = self.cache.find(task_id, None)
        work = None if live is None else self._works.get(live)
        if self.active + self._waking >= MAX_EXECUTIONS and not self._draining:
            self._alarms.set(task_id, time.time() + POSTPONED_SECONDS)
        elif work is not None:
            self._rouse(work)
        elif not self._draining:
            self._waking += 1
            self.spawn(self._go_on_later, task_id)

    async def _go_on_later(self, task_id: str) -> None:
        try:
            async with self.cache.pinned(task_id, None) as live:
                while live.pending and live.lost is None:
                    await live.wait_for_change()
                self.go_on(live)
        except FailureError:  # it was deleted
            pass
        except StoreError as exc:  # it is found as forgotten
            log_failure(exc)
        finally:
            self._waking -= 1

    def _rouse(self, work: _Work) -> None:
        """Look again at executions that wait until the first one goes on."""
        if self._asleep.pop(work.live, None) is not None:
            self._pool.submit(work)

    # -- cancellation ------------------------------------------------------------------------------------------

    def interrupt(self, live: LiveTask) -> None:
        """Cancel the execution of this task that runs now, if one does, or that sleeps."""
        self._alarms.clear(live.id)
        work = self._works.get(live)
        if work is not None:
            self._rouse(work)
        self._stop(live)

    def _stop(self, live: LiveTask) -> None:
        work = self._works.get(live)
        if work is not None and work.queue and work.queue[0].executing and work.scope is not None:
            work.queue[0].interrupted = True
            work.ended_by = Cancelled()
            work.scope.cancel()

    async def cancel(self, live: LiveTask, context: RequestContext) -> Task:
        """Cancel a task that has not ended; returns it as it is then.

        Raises `FailureError(TaskNotCancelable)` where its executor refuses, or can't cancel at all, and what `wait_committed`
        raises.
        """
        events = TaskEvents(live)
        await self._prepare_to_cancel(context, events)
        if live.ended and not events.ended_task and live.state is not TaskState.CANCELED:
            await wait_committed(live)
            raise FailureError(not_cancelable_any_more(live.id, live.status))
        if not live.ended:
            live.set_status(TaskState.CANCELED)
        self.interrupt(live)
        return await wait_committed(live)

    async def _prepare_to_cancel(self, context: RequestContext, events: TaskEvents) -> None:
        """Let the executor prepare for the cancellation. Its faults are logged."""
        cancel = self._cancel
        fault: BaseException | None = None
        if cancel is not None:
            fault = TimeoutError("cancel took too long")
            with anyio.move_on_after(CANCEL_SECONDS):
                done = await attempt(lambda: cancel(context, events), step="agent.cancel")
                fault = done.exc if isinstance(done, Raised) else None
        if cancel is None or issubclass(type(fault), NotCancelable):
            state = events.task.status.state.value
            raise FailureError(keeps_on(context.task.id, state))
        if fault is not None and not was_overtaken(events, fault):
            log.error("agent.failed", task=context.task.id, exc=fault)


def context_of(task: Task, message: Message | None, call: CallFacts) -> RequestContext:
    """Return what an executor is told of a stored message."""
    return RequestContext(task, message, call.metadata, call.accepted_output_modes, call.extensions, call.identity)
