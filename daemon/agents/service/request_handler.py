"""What an agent does for its callers, whatever dialect they speak (A2A 1.0 section 3). Checks, then acts; knows no JSON."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from typing import Final, TypeAlias, final

import msgspec

from ....errors.exceptions import FailureError, OperationError
from ....errors.failures import InvalidParams, TaskNotCancelable
from ...operations.access import Identity
from ..model.draft import fold
from ..model.ids import new_id, now
from ..model.states import RESTING, TERMINAL
from ..model.types import Event, JsonObject, Message, SendConfiguration, StatusChanged, Task, TaskState, TaskStatus
from ..stores.interface import Listed, Logged, LogMovedError, Query, TaskStore
from ..tasks.executor import RequestContext
from ..tasks.live_task import LiveTask, Watcher
from ..tasks.runner import CANCEL_SECONDS, Execution, Runner, check_lost, committed, has_ended
from ..tasks.task_cache import TaskCache
from .push_configs import PushConfigs

CANCEL: Final = "cancel"
"""What the daemon that works on a task is asked."""


class EventsLost(OperationError, code="EVENTS_LOST", http_status=410, retryable=True):
    """The subscriber was too slow for the task's log; a new subscription begins with the task as it is"""

    taskId: str  # noqa: N815 - as everything on this wire
    lastGeneration: int  # noqa: N815


class Caller(msgspec.Struct, frozen=True):
    """Who calls, and how. `scope` is whose tasks the caller sees; `dialect` is for its push notifications."""

    scope: str
    dialect: str
    identity: Identity | None = None
    extensions: tuple[str, ...] = ()
    service_params: Mapping[str, str] = {}


class Sending(msgspec.Struct, frozen=True):
    """A message and what came with it."""

    message: Message
    configuration: SendConfiguration = SendConfiguration()
    metadata: JsonObject | None = None


class Happened(msgspec.Struct, frozen=True):
    """An event of a task, for a stream."""

    task_id: str
    context_id: str
    event: Event


Streamed: TypeAlias = Task | Message | Happened
"""What a stream is made of: first the task, or nothing but a reply; then what happens to the task."""


@final
class RequestHandler:
    """One per daemon. Every method raises `FailureError` or a declared error for what can't be done."""

    def __init__(self, store: TaskStore, residents: TaskCache, runner: Runner, targets: PushConfigs) -> None:
        self._store = store
        self._residents = residents
        self._runner = runner
        self.targets = targets

    # -- messages ----------------------------------------------------------------------------------------------

    async def send(self, sending: Sending, caller: Caller) -> Task | Message:
        """Hand a message to the agent; the task when it has come to rest (at once with `return_immediately`), or the reply.

        Cancelling it leaves the task alone.
        """
        async with self._submitted(sending, caller) as run:
            rest: Task | None = None
            if sending.configuration.return_immediately:
                run.announce()
            else:
                rest = await run.settle()
            if run.reply is not None:
                return run.reply
            task = await self._begun(sending, run.live)
            return rest or task

    async def stream(self, sending: Sending, caller: Caller) -> AsyncGenerator[Streamed, None]:
        """The same, with everything that happens, until the task has come to rest.

        It begins with the task: a new one as it began, another as it is; or it is one reply and nothing else.
        """
        async with self._submitted(sending, caller) as run:
            live = run.live
            with closing(live.watch()) as watcher:
                if live.generation:
                    yield await self._begun(sending, live)
                else:
                    while not (live.generation or run.settled):
                        await live.changed()
                    if run.reply is not None:
                        yield run.reply
                        return
                    await self._begun(sending, live)
                while batch := await self._next(watcher, lambda: run.settled):
                    for logged in batch:
                        yield Happened(live.id, live.context_id, logged.event)
                        if run.first is not None and logged.generation > run.first and _leads_to(RESTING, logged.event):
                            return
                await run.settle()

    @asynccontextmanager
    async def _submitted(self, sending: Sending, caller: Caller) -> AsyncIterator[Execution]:
        """Queue a message with its task, which is new where it names none, and hold the task meanwhile."""
        task_id = sending.message.task_id
        if task_id:
            live = await self._residents.hold(task_id, caller.scope)
        else:
            live = self._residents.create(_begin(sending.message), caller.scope)
        try:
            yield self._submit(live, sending, caller)
        finally:
            self._residents.release(live)

    def _submit(self, live: LiveTask, sending: Sending, caller: Caller) -> Execution:
        if live.ended:
            raise FailureError(has_ended(live))
        if sending.message.context_id not in (None, "", live.context_id):
            raise FailureError(InvalidParams("message.contextId", "the context of the task", "another"))
        push = sending.configuration.task_push_notification_config
        if push is not None:
            self.targets.admit(live)
        context = RequestContext(
            live.task(),
            _addressed(sending.message, live.id, live.context_id),
            sending.metadata,
            sending.configuration.accepted_output_modes,
            caller.extensions,
            caller.identity,
            caller.service_params,
        )
        run = self._runner.submit(live, context)
        if push is not None:
            self.targets.aim(live, push, caller.dialect)
        return run

    async def _begun(self, sending: Sending, live: LiveTask) -> Task:
        """The task, once it is in the store, and with it where its news go."""
        task = await committed(live)
        if sending.configuration.task_push_notification_config is not None:
            await self.targets.keep(live)
        return task

    # -- tasks -------------------------------------------------------------------------------------------------

    async def get(self, task_id: str, caller: Caller) -> Task:
        """The task as it is now."""
        live = self._residents.find(task_id, caller.scope)
        if live is not None and not live.shared:
            return await committed(live)
        stored = await self._residents.load(task_id, caller.scope)
        if not stored.later:
            return stored.snapshot
        return fold(stored.snapshot, [logged.event for logged in stored.later])

    async def list(self, query: Query) -> Listed:
        """One page of tasks. Raises `FailureError(InvalidParams)` for a token that is none."""
        try:
            return await self._store.list(query)
        except ValueError:
            raise FailureError(InvalidParams("pageToken", "token of a page before", "string")) from None

    async def cancel(self, task_id: str, metadata: JsonObject | None, caller: Caller) -> Task:
        """Cancel a task; the task as it is then."""
        async with self._residents.held(task_id, caller.scope) as live:
            if live.ended:
                raise FailureError(
                    TaskNotCancelable(task_id=live.id, current_state=live.state.value, reason="The task has ended.")
                )
            if live.foreign:
                return await self._cancel_abroad(live)
            context = RequestContext(
                live.task(), None, metadata, None, caller.extensions, caller.identity, caller.service_params
            )
            return await self._runner.cancel(live, context)

    async def _cancel_abroad(self, live: LiveTask) -> Task:
        """Ask the daemon that works on the task."""
        import anyio  # late: the first replies leave without an event loop

        await self._store.ask_owner(live.id, CANCEL)
        with anyio.move_on_after(CANCEL_SECONDS):
            while not live.ended and live.foreign and live.lost is None:
                await live.changed()
        if not live.ended:
            check_lost(live)
            raise FailureError(TaskNotCancelable(task_id=live.id, current_state=live.state.value))
        return live.task()

    async def subscribe(
        self, task_id: str, caller: Caller, *, until: frozenset[TaskState] = TERMINAL
    ) -> AsyncGenerator[Streamed, None]:
        """The task as it is, then everything that happens to it until it has one of these states."""
        async with self._residents.held(task_id, caller.scope) as live:
            if live.ended:
                raise FailureError(has_ended(live))
            with closing(live.watch()) as watcher:
                yield await committed(live)
                while batch := await self._next(watcher, lambda: False):
                    for logged in batch:
                        yield Happened(live.id, live.context_id, logged.event)
                        if _leads_to(until, logged.event):
                            return

    async def _next(self, watcher: Watcher, over: Callable[[], bool]) -> Sequence[Logged]:
        """The next events behind the watcher's place, in order, none twice and none left out; empty when it is over."""
        live = watcher.live
        while True:
            kept = watcher.take()
            batch = await self._from_store(watcher) if kept is None else kept
            if not batch and live.lost == "behind":
                batch = await self._from_store(watcher)  # which says from where on there is something again
            if batch:
                return batch
            check_lost(live)
            if watcher.position >= live.generation and (live.ended or over()):
                return ()
            if watcher.position >= live.committed:  # else it was committed while the store was asked
                await live.changed()

    async def _from_store(self, watcher: Watcher) -> Sequence[Logged]:
        live = watcher.live
        try:
            batch = await self._store.events.read(live.id, after=watcher.position)
        except LogMovedError as exc:
            raise EventsLost(taskId=live.id, lastGeneration=exc.last) from None
        if batch:
            watcher.position = batch[-1].generation
        return batch


def _begin(message: Message) -> Task:
    """The task that a message begins."""
    task_id, context_id = new_id(), message.context_id or new_id()
    history = (_addressed(message, task_id, context_id),)
    return Task(task_id, context_id, TaskStatus(TaskState.SUBMITTED, timestamp=now()), history=history)


def _addressed(message: Message, task_id: str, context_id: str) -> Message:
    return msgspec.structs.replace(message, task_id=task_id, context_id=context_id)


def _leads_to(states: frozenset[TaskState], event: Event) -> bool:
    return isinstance(event, StatusChanged) and event.status.state in states
