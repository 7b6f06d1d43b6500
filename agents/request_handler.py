"""Handles the requests of an agent's callers, in every version (A2A 1.0 section 3). Knows no JSON and no transport."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, closing, suppress
from random import random
from typing import TYPE_CHECKING, Final, Self, final

import msgspec

from ..a2a.errors import TaskConflict, has_no_events, not_cancelable_any_more, takes_no_message
from ..a2a.task import addressed, check_same_content, new_task
from ..a2a.types import (
    INACTIVE,
    TERMINAL,
    ArtifactChanged,
    ExecutionBegun,
    JsonObject,
    Message,
    MessageAdded,
    PushConfig,
    SendRequest,
    StatusChanged,
    StepStored,
    StreamItem,
    Task,
    TaskCreated,
    TaskEvent,
    TaskPage,
    TaskQuery,
    TaskState,
    TaskStatus,
    TaskUpdate,
    derived_ids,
)
from ..change_signal import ChangeSignal
from ..daemon.operations.identity import Identity
from ..errors.backoff import exponential_backoff
from ..errors.exceptions import FailureError
from ..errors.failures import Internal, InvalidParams, Overloaded, TimedOut, Unavailable
from ..lazy import anyio
from .cluster import take_ownership
from .delegator import RESEND_SECONDS, Delegator
from .executor import RequestContext
from .live_task import MAX_LOSSES, RETRY_AFTER_MS, EventReader, LiveTask, raise_if_lost, wait_committed
from .push_configs import PushConfigs
from .runner import Runner, Submission
from .stores.interface import ANSWER, CANCEL, QUEUED, LoggedEvent, LogTruncatedError, OwnerRequest, TaskChange
from .task_inputs import are_awaited, take_answers

if TYPE_CHECKING:
    from .editor import Turn


class Caller(msgspec.Struct, frozen=True):
    """A caller and its version. A caller sees the tasks of its own `scope` only; its push notifications are in its `version`."""

    scope: str
    version: str
    identity: Identity | None = None
    extensions: tuple[str, ...] = ()
    service_params: Mapping[str, str] = {}
    turn: Turn | None = None


OPERATION: Final = "discreet:operation"
"""Named among the extensions of a message that runs an operation where an agent is hosted, too. Callers can't name it."""

_OPERATIONS: Final = "operation="


def task_scope(identity: Identity | None) -> str:
    """Return the scope of the tasks that a caller begins by messages. No other caller has it, and no task of an operation."""
    subject = "" if identity is None else identity.subject
    return f"={subject}" if subject.startswith(("=", _OPERATIONS)) else subject


def operation_scope(identity: Identity | None) -> str:
    """Return the scope of the tasks that a caller's operations run as."""
    return _OPERATIONS + ("" if identity is None else identity.subject)


def caller_of(scope: str) -> tuple[str, bool]:
    """Return the subject of the caller whose tasks have this scope, empty for none; and whether they are those of operations."""
    if scope.startswith(_OPERATIONS):
        return scope.removeprefix(_OPERATIONS), True
    return scope.removeprefix("="), False


MAX_ROUNDS: Final = 64
"""How often in a row a message is submitted again after its task was lost to another daemon. Each time that one has stored
something for the task, so a sender that loses so often waits for about ten seconds."""

FIRST_ROUND_SECONDS, LONGEST_ROUND_SECONDS = 0.002, 0.25
"""The pauses between these rounds, before a random share is left out."""


ARRIVAL_SECONDS: Final = 10.0
"""How long a message waits for the one that came before it to be submitted. That one may wait for its editor, without an end."""


class _Arrival(msgspec.Struct, eq=False):
    """A message for a task from when it arrives until its sender is answered; `submitted` is what became of it last. `changed` is
    notified when that has changed, or the message has gone, if another message waits for it."""

    submitted: Submission | None = None
    changed: ChangeSignal | None = None

    def notify(self) -> None:
        """Tell the message that waits for a change."""
        if self.changed is not None:
            self.changed.notify()


@final
class _Arrivals:
    """The messages for each task in the order in which they came to this daemon. Where a task is lost to another daemon, they are
    submitted anew in this order."""

    def __init__(self) -> None:
        self._by_task: dict[str, list[_Arrival]] = {}

    def add(self, task_id: str, arrival: _Arrival) -> None:
        """Count a message as on its way until `remove`."""
        self._by_task.setdefault(task_id, []).append(arrival)

    def remove(self, task_id: str, arrival: _Arrival) -> None:
        """It has its answer, or its sender has gone."""
        arrivals = self._by_task[task_id]
        arrivals.remove(arrival)
        arrival.notify()
        if not arrivals:
            del self._by_task[task_id]

    async def wait_turn(self, arrival: _Arrival, live: LiveTask) -> None:
        """Wait until the message that came before is submitted to the same state of the task, or is stored, or has gone.

        Raises as `raise_if_lost`, and `FailureError(Unavailable)` after `ARRIVAL_SECONDS`.
        """
        arrivals = self._by_task.get(live.id, ())
        with anyio.move_on_after(ARRIVAL_SECONDS) as scope:
            while arrival in arrivals and (place := arrivals.index(arrival)):
                before = arrivals[place - 1]
                submitted = before.submitted
                if submitted is not None and (submitted.live is live or submitted.stored):
                    break
                before.changed = before.changed or ChangeSignal()
                await before.changed.wait()
        if scope.cancelled_caught:
            raise FailureError(Unavailable(RETRY_AFTER_MS))
        raise_if_lost(live)


@final
class RequestHandler:
    """One per daemon. `follow(live)` reads what other daemons have done to a task, `open_store()` returns an event that is set
    when the store is open or has failed. Another daemon may take `remote_cancel_seconds` to cancel a task of its own.

    With `deduplicates_messages` a message that is sent again gets the task that it began, or the turn of its task: the id of a
    new task is derived from its caller and its message, so that no store takes two of them.

    Every method raises `FailureError`, or a declared error, where the request can't be fulfilled. Cancelling a method stops its
    waiting. The task goes on.
    """

    def __init__(
        self,
        runner: Runner,
        delegator: Delegator,
        push_configs: PushConfigs,
        follow: Callable[[LiveTask], Awaitable[None]],
        open_store: Callable[[], anyio.Event],
        *,
        remote_cancel_seconds: float,
        deduplicates_messages: bool = True,
    ) -> None:
        self._runner = runner
        self._deduplicates = deduplicates_messages
        self._cache = runner.cache
        self._store = runner.cache.store
        self._delegator = delegator
        self._follow = follow
        self._remote_cancel_seconds = remote_cancel_seconds
        self._open_store = open_store
        self._opened: anyio.Event | None = None
        self._arrivals = _Arrivals()
        self._waiting = 0
        self._lets_go = False
        self.store_failed = False
        self.is_ready = False
        """Whether `ready` need not be awaited any more."""
        self.push_configs: Final = push_configs

    async def ready(self) -> Self:
        """Wait until the store is open; have it opened if need be.

        Raises `FailureError(Internal)` where it can't be opened; the log says why.
        """
        opened = self._opened = self._opened or self._open_store()
        if self._waiting or not opened.is_set():  # a call does not overtake those that wait
            self._waiting += 1
            try:
                await opened.wait()
            finally:
                self._waiting -= 1
        if self.store_failed:
            raise FailureError(Internal())
        self.is_ready = not self._waiting
        return self

    async def let_go(self, seconds: float) -> None:
        """After so many seconds answer senders with their tasks as they are stored, whatever these still wait for."""
        await anyio.sleep(seconds)
        self._lets_go = True
        for live in self._cache:
            live.notify()

    # -- messages ----------------------------------------------------------------------------------------------

    async def send(self, request: SendRequest, caller: Caller) -> Task | Message:
        """Send a message to the agent.

        Returns the task when it has ended or waits for its caller, or the agent's reply. With `return_immediately` returns
        when the message is in the store. A message whose task ends before its turn is never executed: the task that is
        returned has it in its history.
        """
        self._store.check_reachable()
        awaited, task_id, arrival = not request.configuration.return_immediately, request.message.task_id, _Arrival()
        if task_id:  # another one has nothing to wait for
            self._arrivals.add(task_id, arrival)
        try:
            seen: int | None = None
            for rounds in range(MAX_ROUNDS):
                submitted = await self._submit_again(request, caller, arrival, rounds, awaited=awaited)
                if submitted is None:
                    continue
                submitted.awaited = awaited
                submitted.watch()
                try:
                    return await self._answer(request, submitted, seen)
                except TaskConflict:  # another daemon has changed the task: see what became of the message
                    seen = submitted.live.committed if seen is None else seen
                finally:
                    submitted.unwatch()
                    self._cache.unpin(submitted.live)
        finally:
            if task_id:
                self._arrivals.remove(task_id, arrival)
        raise FailureError(Unavailable(RETRY_AFTER_MS))

    async def _submit_again(
        self, request: SendRequest, caller: Caller, arrival: _Arrival, rounds: int, *, awaited: bool = False
    ) -> Submission | None:
        """Submit the message, which has lost its task to other daemons in so many `rounds`; None where it has once more."""
        if rounds > 1:
            longest = exponential_backoff(FIRST_ROUND_SECONDS, LONGEST_ROUND_SECONDS, rounds - 2)
            await anyio.sleep(longest * random())  # so that daemons that race do not stay in step
        try:
            submitted = await self._submit(request, caller, arrival, awaited=awaited)
        except TaskConflict:
            return None
        arrival.submitted = submitted
        if arrival.changed is not None:
            arrival.notify()
        return submitted

    async def _answer(self, request: SendRequest, submitted: Submission, seen: int | None) -> Task | Message:
        """`seen` is the task's generation when it was lost first, if it was."""
        stopped: Task | None = None
        if request.configuration.return_immediately:
            await submitted.wait_accepted()
        elif seen is not None and submitted.is_over:  # it was worked on meanwhile
            stopped = await self._as_stopped(submitted, seen)
        if not (request.configuration.return_immediately or stopped):
            stopped = await submitted.wait_settled(lambda: self._lets_go)
        if submitted.reply is not None:
            return submitted.reply
        if stopped is not None and submitted.delegated and request.configuration.task_push_notification_config is None:
            return stopped  # the store has it, and there is nothing else to store
        task = await self._wait_stored(request, submitted)
        return stopped or task

    async def _as_stopped(self, submitted: Submission, after: int) -> Task | None:
        """Read the task as the message has stopped it, since the generation `after`; its artifacts are as they are now.

        None where it was not executed, or the log was shortened. Raises as `wait_committed`.
        """
        live, place = submitted.live, submitted.position
        assert place is not None, "it is over"
        generation, message = live.generation, live.message(place)
        task = await wait_committed(live)
        events: list[TaskEvent] = []
        with suppress(LogTruncatedError):
            while after < generation and (batch := await self._store.event_log.read(live.id, after=after)):
                events += [
                    logged.event
                    for logged in batch
                    if logged.generation <= generation and not isinstance(logged.event, ArtifactChanged | StepStored)
                ]
                after = batch[-1].generation
        first = next((number for number, event in enumerate(events) if _begins(event, place, message)), 0)
        stopped: TaskStatus | None = None
        last, later = task.status, 0  # the messages that came into the history behind it
        for event in events[first:] if after >= generation else ():
            if isinstance(event, StatusChanged):
                later += stopped is not None and last.message is not None
                last = event.status
                stopped = stopped or (last if last.state in INACTIVE else None)
            elif isinstance(event, MessageAdded):
                later += stopped is not None
        if stopped is None:
            return None
        return msgspec.structs.replace(task, status=stopped, history=task.history[: len(task.history) - later])

    async def stream(self, request: SendRequest, caller: Caller) -> AsyncGenerator[StreamItem, None]:
        """Send a message to the agent, and get the task and its updates until it ends or waits for its caller.

        A new task is as it began, another as it is now. Where the agent replies without a task, the reply is the only item.
        """
        async with aclosing(self.batches(request, caller)) as batches:
            async for batch in batches:
                for item in batch:
                    yield item

    async def batches(self, request: SendRequest, caller: Caller) -> AsyncGenerator[Sequence[StreamItem], None]:
        """Do as `stream`, with several items at once where they are there already."""
        self._store.check_reachable()
        covered: int | None = None
        rounds, task_id, arrival = 0, request.message.task_id, _Arrival()
        if task_id:
            self._arrivals.add(task_id, arrival)
        try:
            while rounds < MAX_ROUNDS:
                submitted = await self._submit_again(request, caller, arrival, rounds)
                rounds += 1
                if submitted is None:
                    continue
                submitted.awaited = True
                try:
                    async with aclosing(self._batches(request, submitted, covered)) as batches:
                        async for generation, batch in batches:
                            covered, rounds = generation, 0
                            yield batch
                    return
                except TaskConflict:  # another daemon has changed the task: go on with what became of the message
                    pass
                finally:
                    self._cache.unpin(submitted.live)
        finally:
            if task_id:
                self._arrivals.remove(task_id, arrival)
        raise FailureError(Unavailable(RETRY_AFTER_MS))

    async def _batches(
        self, request: SendRequest, submitted: Submission, covered: int | None
    ) -> AsyncGenerator[tuple[int, Sequence[StreamItem]], None]:
        """Batches, each with the generation that it covers; those after generation `covered`, if it is given."""
        live = submitted.live
        await submitted.wait_delegated()  # the stream begins with the task as it is then
        if covered is not None and covered > live.generation:  # it has seen more elsewhere than was heard of here
            await self._follow(live)
        with closing(EventReader(live, self._store.event_log, after=covered)) as reader:
            if covered is None and live.generation:
                begins_at = live.generation
                yield begins_at, [await self._wait_stored(request, submitted)]
            elif covered is None:
                while not (live.generation or submitted.settled):
                    await live.wait_for_change()
                if submitted.reply is not None:
                    yield 0, [submitted.reply]
                    return
                await self._wait_stored(request, submitted)  # the first event is the new task itself
            while batch := await reader.next_batch(lambda: submitted.settled):
                until = _first_stop(batch, submitted.began)
                yield (
                    batch[-1].generation,
                    [TaskUpdate(live.id, live.context_id, logged.event, logged.generation) for logged in batch[:until]],
                )
                if until is not None:
                    return
            await submitted.wait_settled()

    # -- how a message becomes an execution --------------------------------------------------------------------

    async def _submit(
        self, request: SendRequest, caller: Caller, arrival: _Arrival, *, awaited: bool = False
    ) -> Submission:
        """Submit a message for the task that it names, or for a new one, which stays in memory until `unpin`. One that was
        submitted before, here or at another daemon, is not submitted again.

        `arrival` has what this gave the last time: its task was lost, as another daemon has changed it. Waits for nothing but the
        store, and for those that arrived before. Raises `FailureError` where the message can't be accepted, the executor's own
        refusal, and `TaskConflict` where the task was lost meanwhile.
        """
        message, task_id, before = request.message, request.message.task_id, arrival.submitted
        if before is not None and before.stored:
            task_id = before.live.id
        ids = None if task_id or not self._deduplicates else derived_ids(caller.scope, message.message_id)
        # An executor that may reply begins before the store can tell that the task is there.
        is_unsure = before is not None or self._runner.replies_without_task
        while ids is not None and (is_unsure or self._cache.knows(ids[0])):
            is_unsure = False
            if (found := await self._find_begun(ids, request, caller)) is not None:
                return found
        live = (
            await self._cache.pin(task_id, caller.scope)
            if task_id
            else self._cache.create(new_task(message, ids), caller.scope)
        )
        try:
            return await self._submit_pinned(live, request, caller, arrival, awaited=awaited)
        except FailureError as exc:
            self._cache.unpin(live)
            if ids is None or isinstance(exc.failure, Overloaded):
                raise
            if (found := await self._find_begun(ids, request, caller)) is None:
                raise
            return found
        except BaseException:
            self._cache.unpin(live)
            raise

    async def _find_begun(self, ids: tuple[str, str], request: SendRequest, caller: Caller) -> Submission | None:
        """Return the message that has begun the task of these ids before, with its task pinned; None where there is no such task.

        Raises `FailureError(InvalidParams)` if the message was another one.
        """
        (task_id, context_id), message = ids, request.message
        sent = addressed(message, task_id, message.context_id or context_id)
        first = self._runner.find_unpublished(task_id)
        if first is not None:
            check_same_content(first.message, sent)
            if request.configuration.return_immediately:  # as where it is sent so for the first time, there is a task
                first.live.ensure_created(first.call)
            first.live.pins += 1
            return first
        try:
            live = await self._cache.pin(task_id, caller.scope)
        except FailureError:
            return None
        try:
            check_same_content(live.message(0), sent)
            return await self._find_accepted(live, 0, message.message_id, request, caller)
        except BaseException:
            self._cache.unpin(live)
            raise

    async def _submit_pinned(
        self, live: LiveTask, request: SendRequest, caller: Caller, arrival: _Arrival, *, awaited: bool
    ) -> Submission:
        before = arrival.submitted
        key = request.message.message_id if self._deduplicates else ""
        if before is not None and before.key:
            key = before.key
        position = before.position if before is not None and before.stored else None
        if position is None:
            if caller.turn is not None:  # only this daemon has the caller's editor
                while live.remote and not (live.ended or live.lost):
                    await live.wait_for_change()
            if live.generation and live.shared:
                await self.push_configs.refresh(live)
            if caller.turn is None and request.message.task_id:
                await self._arrivals.wait_turn(arrival, live)
            if live.generation:
                position = live.find(key, request.message)
        if position is not None:
            return await self._find_accepted(live, position, key, request, caller)
        submitted = self._submit_to(live, request, caller, key, awaited=awaited)
        submitted.key = submitted.key or key
        return submitted

    async def _find_accepted(
        self, live: LiveTask, position: int, key: str, request: SendRequest, caller: Caller
    ) -> Submission:
        """Return the message at this place of the history, with the push config with which it is sent again."""
        found = Submission(live, key)
        found.accept(position)
        config = request.configuration.task_push_notification_config
        if config is not None:
            await self.push_configs.ensure(live, config, caller.version)
        return found

    def _submit_to(
        self, live: LiveTask, request: SendRequest, caller: Caller, key: str, *, awaited: bool
    ) -> Submission:
        if live.lost is not None:
            raise_if_lost(live)
        if live.ended:
            raise FailureError(takes_no_message(live.id, live.status))
        message, configuration, turn = request.message, request.configuration, caller.turn
        if message.context_id not in (None, "", live.context_id):
            raise FailureError(InvalidParams("message.contextId", "the context of the task", "another"))
        config = configuration.task_push_notification_config
        if config is not None:
            self.push_configs.check_capacity(live)
        task = live.task()
        context = RequestContext(
            task,
            addressed(message, live.id, live.context_id) if live.generation else task.history[0],
            request.metadata,
            configuration.accepted_output_modes,
            caller.extensions,
            caller.identity,
            caller.service_params,
            editor=None if turn is None else turn.editor,
        )
        is_remote = live.remote_owner is not None or (self._delegator.queues and not live.busy)
        if turn is None and (is_remote or self._delegator.has_messages(live)):
            return self._delegate(live, context, config, caller, key)
        targets = live.push_targets
        if config is not None:  # first: its receiver is told of the message, too
            self.push_configs.attach(live, config, caller.version)
        try:
            at_once = turn is not None or bool(configuration.return_immediately)
            submitted = self._runner.submit(live, context, at_once=at_once, awaited=awaited)
        except BaseException:
            live.push_targets = targets
            raise
        if turn is not None:
            turn.begin(live)
        return submitted

    def _delegate(
        self, live: LiveTask, context: RequestContext, config: PushConfig | None, caller: Caller, key: str
    ) -> Submission:
        """Leave a message to another daemon. That one sends the push notifications."""
        if config is None:
            return self._delegator.submit(live, context, None, key)
        target = self.push_configs.target(live, config, caller.version)
        return self._delegator.submit(live, context, lambda: self.push_configs.save_and_activate(live, target), key)

    async def _wait_stored(self, request: SendRequest, submitted: Submission) -> Task:
        """The task as it is now, once it and the request's push config are in the store."""
        task = await submitted.wait_stored()
        config = request.configuration.task_push_notification_config
        if config is not None and submitted.context is not None and not submitted.remote:
            await self.push_configs.save(submitted.live)
        return task

    # -- tasks -------------------------------------------------------------------------------------------------

    async def get(self, task_id: str, caller: Caller) -> Task:
        """The task as it is now."""
        live = self._cache.find(task_id, caller.scope)
        if live is not None and not (live.remote or live.released):
            with suppress(TaskConflict):  # another daemon has changed it meanwhile: the store has it
                return await wait_committed(live)
        return await self._cache.read(task_id, caller.scope)

    async def history(self, task_id: str, caller: Caller) -> AsyncGenerator[Task | TaskEvent, None]:
        """Everything that has happened to the task so far; only the task as it is where its log has been shortened."""
        task = await self.get(task_id, caller)
        position = 0
        try:
            while batch := await self._store.event_log.read(task_id, after=position):
                for logged in batch:
                    yield logged.event
                position = batch[-1].generation
        except LogTruncatedError:
            if not position:
                yield task

    async def list(self, query: TaskQuery) -> TaskPage:
        """One page of tasks. Raises `FailureError(InvalidParams)` for a page token that is not valid."""
        try:
            return await self._store.list(query)
        except ValueError:
            raise FailureError(InvalidParams("pageToken", "token of a page before", "string")) from None

    async def add_ended(self, task: Task, caller: Caller) -> None:
        """Store a new task that has ended already: a mark in its context. No executor hears of it. Raises `FailureError`."""
        change = TaskChange(
            task_id=task.id,
            expected_generation=0,
            events=(TaskCreated(task),),
            scope=caller.scope,
            context_id=task.context_id,
            state=task.status.state,
            status_timestamp=task.status.timestamp or "",
            owner=None,
        )
        (refusal,) = await self._store.commit([change])
        if refusal is not None:
            raise FailureError(Overloaded())

    async def cancel(self, task_id: str, metadata: JsonObject | None, caller: Caller) -> Task:
        """Cancel a task; returns it as it is then. Raises `FailureError` where it can't be cancelled."""
        for _ in range(MAX_LOSSES):
            with suppress(TaskConflict):  # another daemon has changed it meanwhile: look again
                return await self._cancel(task_id, metadata, caller)
        raise TaskConflict

    async def _cancel(self, task_id: str, metadata: JsonObject | None, caller: Caller) -> Task:
        async with self._cache.pinned(task_id, caller.scope) as live:
            if live.ended:
                raise FailureError(not_cancelable_any_more(live.id, live.status))
            was_queued = await self._cancel_remotely(live)
            if live.ended and live.state is not TaskState.CANCELED:  # it ended by itself before
                raise FailureError(not_cancelable_any_more(live.id, live.status))
            if live.ended:
                return await wait_committed(live)
            context = RequestContext(
                live.task(), None, metadata, None, caller.extensions, caller.identity, caller.service_params
            )
            try:
                return await self._runner.cancel(live, context)
            finally:
                if was_queued and not live.busy:  # the executor has refused, or the caller has gone
                    live.queue()

    async def answer(self, task_id: str, answers: JsonObject, caller: Caller) -> None:
        """Give an operation's task the answers of its client, by the keys of its requests; they are stored when this returns.
        Answers that the task does not wait for are dropped.

        Raises `FailureError(TimedOut)` where the daemon that works on the task has not taken them after `remote_seconds`.
        """
        for _ in range(MAX_LOSSES):
            with suppress(TaskConflict):  # another daemon has changed it meanwhile: look again
                return await self._answer_task(task_id, answers, caller)
        raise TaskConflict

    async def _answer_task(self, task_id: str, answers: JsonObject, caller: Caller) -> None:
        async with self._cache.pinned(task_id, caller.scope) as live:
            if live.shared:  # it may have asked since this daemon heard of it
                await self._follow(live)
            request = OwnerRequest(live.id, ANSWER, msgspec.json.encode(answers))
            with anyio.move_on_after(self._remote_cancel_seconds):
                while live.remote and live.lost is None and are_awaited(live, answers):
                    await self._store.send_owner_request(request)
                    with anyio.move_on_after(RESEND_SECONDS):
                        while live.remote and live.lost is None and are_awaited(live, answers):
                            await live.wait_for_change()
            raise_if_lost(live)
            if live.remote and are_awaited(live, answers):
                raise FailureError(TimedOut())
            if not live.remote:
                take_answers(live, answers)
            await wait_committed(live)

    async def _cancel_remotely(self, live: LiveTask) -> bool:
        """Have the task cancelled by the daemon that works on it. Returns when none does any more: a task that has stopped
        without having ended is to be cancelled here. True where it was taken from the queue for that.

        The store drops the request when the task stops. If the other daemon works on it again by now, it is asked again.
        Raises `FailureError(TimedOut)` where it still works on it after `remote_seconds`: that daemon refuses, is busy, or
        is stopped and will do it later. The request stays in the store. Raises what `raise_if_lost` raises.
        """
        with anyio.move_on_after(self._remote_cancel_seconds):
            while live.remote and not live.ended and live.lost is None:
                if await self._take_from_queue(live):
                    return True
                stop = live.stop_generation
                await self._store.send_owner_request(OwnerRequest(live.id, CANCEL))
                while live.remote and live.stop_generation == stop and live.lost is None:
                    await live.wait_for_change()
        raise_if_lost(live)
        if live.remote and not live.ended:
            raise FailureError(TimedOut())
        return False

    async def _take_from_queue(self, live: LiveTask) -> bool:
        """Become the owner of a task that waits in the queue. Returns False if it does not wait there any more."""
        if live.remote_owner not in (QUEUED, ""):
            return False
        stored = await self._store.load(live.id)
        if stored is None or stored.generation != live.generation or not live.remote:
            return False
        live.remote_owner = stored.owner or ""
        if stored.owner != QUEUED:
            return False
        taken: Sequence[LiveTask] = ()
        with anyio.CancelScope(shield=True):  # for one write, of which this daemon must know
            taken = await take_ownership(self._store, [(live, QUEUED)])
        return bool(taken)

    async def subscribe(
        self,
        task_id: str,
        caller: Caller,
        *,
        until: frozenset[TaskState] = TERMINAL,
        after: int | None = None,
    ) -> AsyncGenerator[StreamItem, None]:
        """The task as it is now, then its updates until it has one of the states `until`.

        `after` is the number of the last update that the caller has: it gets those behind it instead of the task, also where
        the task has ended. Raises `EventsLost` where the log does not hold them any more.
        """
        lost = 0
        while True:
            try:
                async with aclosing(self._updates(task_id, caller, after)) as updates:
                    async for item, covered in updates:
                        lost, after = 0, covered
                        yield item
                        if isinstance(item, TaskUpdate) and _leads_to(until, item.event):
                            return
                return
            except TaskConflict:  # another daemon works on it now: go on with what that one does
                lost += 1
                if lost == MAX_LOSSES:
                    raise

    async def _updates(
        self, task_id: str, caller: Caller, after: int | None
    ) -> AsyncGenerator[tuple[StreamItem, int], None]:
        """The task, unless `after` is given, and its updates; each with the number of the last update that it covers."""
        async with self._cache.pinned(task_id, caller.scope) as live:
            if live.ended and after is None:
                raise FailureError(has_no_events(live.id, live.status))
            if after is not None and after > live.generation:  # it has seen more elsewhere than was heard of here
                await self._follow(live)
            if after is not None and after > live.generation:
                raise FailureError(InvalidParams("Last-Event-ID", f"integer <= {live.generation}", "number"))
            with closing(EventReader(live, self._store.event_log, after=after)) as reader:
                if after is None:
                    covered = live.generation
                    yield await wait_committed(live), covered
                while batch := await reader.next_batch():
                    for logged in batch:
                        update = TaskUpdate(live.id, live.context_id, logged.event, logged.generation)
                        yield update, logged.generation


def _begins(event: TaskEvent, place: int, message: Message) -> bool:
    """Whether the execution of this message, at this place of the history, begins with the event."""
    match event:
        case ExecutionBegun(position):
            return position == place
        case MessageAdded(added, begun=True):
            return added == message
        case _:
            return False


def _first_stop(batch: Sequence[LoggedEvent], start: int | None) -> int | None:
    """How many of these events there are up to the first after `start` by which the task stops; None where it does not."""
    if start is None:
        return None
    for count, logged in enumerate(batch, 1):
        if logged.generation > start and _leads_to(INACTIVE, logged.event):
            return count
    return None


def _leads_to(states: frozenset[TaskState], event: TaskEvent) -> bool:
    return isinstance(event, StatusChanged) and event.status.state in states
