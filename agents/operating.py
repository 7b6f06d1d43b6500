"""Changes tasks in a store for an operator, from a program that is no daemon: cancels them, begins new ones from their messages.

Works on no task itself. The daemon that owns a task is asked through the store; what is begun waits in the store's queue.
"""

from __future__ import annotations

from collections.abc import Collection, Coroutine, Sequence
from contextlib import closing
from time import monotonic
from typing import Any, Final, TypeVar, final  # Any: as coroutines have it

import msgspec

from ..a2a.task import NOT_EXECUTED, addressed
from ..a2a.types import (
    TERMINAL,
    CallFacts,
    Message,
    Part,
    Role,
    SendConfiguration,
    SendRequest,
    StatusChanged,
    Task,
    TaskCreated,
    TaskPage,
    TaskQuery,
    TaskState,
    TaskStatus,
    new_id,
    now,
)
from ..daemon.operations.identity import Identity
from ..errors.exceptions import FailureError, OperationError
from ..errors.failures import Internal, TaskNotFound, Unavailable, UnsupportedOperation
from ..lazy import anyio
from .request_handler import OPERATION, Caller, RequestHandler, caller_of
from .runner import declared_failure
from .stores.failures import log_failure
from .stores.interface import (
    CANCEL,
    QUEUED,
    CommitConflict,
    CommitRefusal,
    LoggedEvent,
    LogTruncatedError,
    OwnerRequest,
    StoredTask,
    StoreError,
    StoreUnavailableError,
    TaskChange,
    TaskStore,
)
from .timeline import Shown, Summary, count_copied, current_task, entries_of, scrubbed, starts_of, summary_of

T = TypeVar("T")

POLL_SECONDS: Final = 0.1
"""How often it is looked whether the owner has cancelled a task."""

ORPHANS_SECONDS: Final = 1.0
"""How often it is looked whether the owner is dead, and how often a living one is asked."""

NOT_DONE: Final = TERMINAL - {TaskState.COMPLETED}
"""The states in which a task can be tried again."""


class UnknownTaskError(Exception):
    """The store has no such task. The message is one line for the operator, as are those of the next two."""


class WrongStateError(Exception):
    """The task, or its message, is not one for which this can be done."""


class NotCancelledError(Exception):
    """The owner has not cancelled the task in time. It may do so later."""


async def load(store: TaskStore, task_id: str) -> StoredTask:
    """Return a task. Raises `UnknownTaskError`, and `StoreError`."""
    return require_task(await store.load(task_id), task_id)


def require_task(stored: StoredTask | None, task_id: str) -> StoredTask:
    """Return the task of this id that was read. Raises `UnknownTaskError` if there is none."""
    if stored is None:
        raise UnknownTaskError(f"{task_id}: the store has no such task")
    return stored


async def cancel(store: TaskStore, task_id: str, seconds: float) -> Task:
    """Cancel a task, and return it as it is then. The daemon that works on it is asked; one that none works on, or whose owner is
    dead, is cancelled here.

    Raises `UnknownTaskError`, `WrongStateError` for one that ends otherwise, `NotCancelledError` after `seconds`, `StoreError`.
    """
    deadline, next_look, dead_since, tried = monotonic() + seconds, 0.0, 0.0, False
    while True:
        stored = await load(store, task_id)
        task, owner = current_task(stored), stored.owner
        if task.status.state is TaskState.CANCELED and tried:
            return task
        if task.status.state in TERMINAL:
            raise WrongStateError(f"{task_id} has ended: it is {task.status.state.word}")
        is_free, tried = owner in (None, QUEUED), True
        if not is_free and monotonic() >= next_look:
            next_look = monotonic() + ORPHANS_SECONDS
            if task_id in await store.list_orphans():
                dead_since = dead_since or monotonic()
                is_free = monotonic() - dead_since >= store.grace_seconds
            else:
                dead_since = 0.0
                await store.send_owner_request(OwnerRequest(task_id, CANCEL))
        if is_free and await _end(store, stored, task):
            return current_task(await load(store, task_id))
        if monotonic() > deadline:
            raise NotCancelledError(
                f"{task_id}: its owner {owner} did not cancel it within {seconds:g} s; its agent refuses, or is busy"
            )
        await anyio.sleep(POLL_SECONDS)


async def _end(store: TaskStore, stored: StoredTask, task: Task) -> bool:
    """Store that a task is cancelled. Returns False if it was changed meanwhile."""
    event = StatusChanged(TaskStatus(TaskState.CANCELED, timestamp=now()))
    change = TaskChange(
        task_id=task.id,
        expected_generation=stored.generation,
        events=(event,),
        scope=stored.scope,
        context_id=task.context_id,
        state=TaskState.CANCELED,
        status_timestamp=event.status.timestamp or "",
        owner=None,
        previous_owner=stored.owner,
    )
    (refusal,) = await store.commit([change])
    if refusal is not None and not isinstance(refusal, CommitConflict):
        raise _refused(refusal)
    return refusal is None


async def retry(store: TaskStore, task_id: str, scopes: Collection[str] | None = ()) -> Task:
    """Begin a new task with the caller's last message of one that has failed, was rejected or cancelled, and with what was said
    before. Raises as `fork`."""
    stored = await load(store, task_id)
    return await _begin(store, stored, _tried_again(stored), scopes)


def _tried_again(stored: StoredTask) -> Task:
    task = current_task(stored)
    if task.status.state not in NOT_DONE:
        word = task.status.state.word
        raise WrongStateError(f"{task.id} is {word}: only a failed, rejected or canceled task is tried again")
    return repeated(task)


async def fork(
    store: TaskStore, task_id: str, message_id: str, text: str | None = None, scopes: Collection[str] = ()
) -> Task:
    """Begin a new task with the history of another one up to a message: that is sent again, or followed by a new message of this
    `text`. Empty for the last one of the caller. Returns the new task, which waits in the queue.

    Raises `UnknownTaskError`, `WrongStateError` and `StoreError`.
    """
    stored = await load(store, task_id)
    return await _begin(store, stored, repeated(current_task(stored), message_id, text), scopes)


def repeated(task: Task, message_id: str = "", text: str | None = None) -> Task:
    """Make the new task of `fork`. The last message has an id of its own, and refers to the task that it comes from."""
    said = [*task.history, *([task.status.message] if task.status.message is not None else [])]
    wanted = [
        place
        for place, message in enumerate(said)
        if (message.message_id == message_id if message_id else message.role is Role.USER)
    ]
    if not wanted:
        raise WrongStateError(f"{task.id} has no message {message_id or 'of its caller'}")
    said = said[: wanted[-1] + 1]
    if text is not None:
        said.append(Message("new", Role.USER, (Part(text=text),)))
    last = said[-1]
    if last.role is not Role.USER:
        raise WrongStateError(f"message {message_id} is the agent's; what follows it is missing")
    references = (*last.reference_task_ids, *(() if task.id in last.reference_task_ids else (task.id,)))
    said[-1] = msgspec.structs.replace(last, message_id=new_id(), reference_task_ids=references)
    new = new_id()
    history = tuple(addressed(_without_note(message), new, task.context_id) for message in said)
    return Task(new, task.context_id, TaskStatus(TaskState.SUBMITTED, timestamp=now()), history=history)


def _without_note(message: Message) -> Message:
    """The message without the note that it was not executed."""
    if NOT_EXECUTED not in (message.metadata or {}):
        return message
    metadata = {name: value for name, value in (message.metadata or {}).items() if name != NOT_EXECUTED}
    return msgspec.structs.replace(message, metadata=metadata or None)


async def _begin(store: TaskStore, stored: StoredTask, task: Task, scopes: Collection[str] | None) -> Task:
    change = TaskChange(
        task_id=task.id,
        expected_generation=0,
        events=(TaskCreated(task, call_for(stored.scope, scopes)),),
        scope=stored.scope,
        context_id=task.context_id,
        state=task.status.state,
        status_timestamp=task.status.timestamp or "",
        owner=QUEUED,
    )
    (refusal,) = await store.commit([change])
    if refusal is not None:
        raise _refused(refusal)
    return task


def call_for(scope: str, scopes: Collection[str] | None) -> CallFacts:
    """Return the facts of a call for the caller whose tasks have this scope. No store keeps what scopes that caller has once a
    message was executed: it is given these, None for all."""
    subject, runs_operation = caller_of(scope)
    identity = Identity(subject, None if scopes is None else frozenset(scopes)) if subject else None
    return CallFacts(extensions=(OPERATION,) if runs_operation else (), identity=identity, key=new_id())


# -- in a daemon -----------------------------------------------------------------------------------------------

MAX_PAGES: Final = 20
"""Pages that are read at once to find tasks that filters let pass."""

MAX_EVENTS: Final = 500
"""Events of one task that are shown."""

MAX_TEXT: Final = 1000
"""Characters of a text that are shown."""


_NOT_TRIED_AGAIN: Final = (
    "Only a failed, rejected or canceled task is tried again, and in memory only one with a single message."
)


class Listing(msgspec.Struct, frozen=True, rename="camel"):
    """Tasks of all callers. `total` counts those of the state and the caller that were asked for; `next` is the token of the next
    page, empty on the last."""

    tasks: list[Summary]
    total: int
    next: str


@final
class Operator:
    """What operators may do in a daemon: see the tasks of all callers, cancel them, and try them again. Every method raises
    `FailureError`. It asks for no scope: that is for its users."""

    def __init__(self, handler: RequestHandler, store: TaskStore) -> None:
        self._handler = handler
        self._store = store

    async def list(self, query: TaskQuery, *, operation: str = "", before: str = "") -> Listing:
        """List a page of the tasks that run this operation and have their state since `before` or longer; both may be empty."""
        return await self._run(self._list(query, operation, before))

    async def _list(self, query: TaskQuery, operation: str, before: str) -> Listing:
        found: Sequence[Summary] = ()
        page = TaskPage((), "", 0)
        for _ in range(MAX_PAGES):
            page = await self._handler.list(msgspec.structs.replace(query, include_artifacts=False))
            listed = zip(page.tasks, page.scopes, page.owners, strict=True)
            found = [
                summary
                for summary in (summary_of(*each) for each in listed)
                if operation in ("", summary.operation) and (not before or summary.since <= before)
            ]
            query = msgspec.structs.replace(query, page_token=page.next_page_token)
            if found or not page.next_page_token:
                break
        return Listing([*found], page.total_size, page.next_page_token)

    async def show(self, task_id: str) -> Shown:
        """Tell what has happened to a task, by its last events, with texts that are scrubbed and cut."""
        return await self._run(self._show(task_id))

    async def _show(self, task_id: str) -> Shown:
        stored = await load(self._store, task_id)
        events, start = await self._last_events(stored)
        entries = [scrubbed(entry, MAX_TEXT) for entry in entries_of(stored, events, count_copied(stored, events))]
        summary = summary_of(current_task(stored), stored.scope, stored.owner)
        return Shown(summary, f"task={task_id}", start - 1, entries)

    async def _last_events(self, stored: StoredTask) -> tuple[Sequence[LoggedEvent], int]:
        """The last events, and the generation before them."""
        least = max(1, stored.generation - MAX_EVENTS)
        for start in starts_of(stored):
            after, events = max(start, least), list[LoggedEvent]()
            try:
                while batch := await self._store.event_log.read(stored.snapshot.id, after=after + len(events)):
                    events += batch
            except LogTruncatedError:
                continue
            return events, after
        return [], stored.generation

    async def cancel(self, task_id: str, identity: Identity | None) -> Summary:
        """Cancel a task as its caller may. `identity` is the operator, whom the executor's `cancel` sees."""
        return await self._run(self._cancel(task_id, identity))

    async def _cancel(self, task_id: str, identity: Identity | None) -> Summary:
        stored = await load(self._store, task_id)
        task = await self._handler.cancel(task_id, None, Caller(stored.scope, "1.0", identity))
        return summary_of(task, stored.scope, None)

    async def retry(self, task_id: str, scopes: Collection[str] | None) -> Summary:
        """Do as `retry` of this module. A store in memory has no queue: the message is sent here, and one of a task with others
        before it can't be."""
        return await self._run(self._retry(task_id, scopes))

    async def _retry(self, task_id: str, scopes: Collection[str] | None) -> Summary:
        if self._store.durable:
            task = await retry(self._store, task_id, scopes)
        else:
            task = await self._send_again(await load(self._store, task_id), scopes)
        stored = await load(self._store, task.id)
        return summary_of(current_task(stored), stored.scope, stored.owner)

    async def _send_again(self, stored: StoredTask, scopes: Collection[str] | None) -> Task:
        (first, *later) = _tried_again(stored).history
        if later:
            raise WrongStateError(
                f"{stored.snapshot.id} has several messages: in memory such a task can't be tried again"
            )
        call = call_for(stored.scope, scopes)
        message = msgspec.structs.replace(first, task_id=None)
        request = SendRequest(message, SendConfiguration(return_immediately=True))
        sent = await self._handler.send(request, Caller(stored.scope, "1.0", call.identity, call.extensions))
        if not isinstance(sent, Task):
            raise WrongStateError(f"{stored.snapshot.id}: the agent has answered without a task")
        return sent

    async def _run(self, work: Coroutine[Any, Any, T]) -> T:  # Any: as coroutines have it
        """Return what the work returns, with the store open. Its exceptions become failures."""
        try:
            with closing(work):  # where the store does not open
                await self._handler.ready()
                return await work
        except UnknownTaskError:
            raise FailureError(TaskNotFound()) from None
        except WrongStateError:
            raise FailureError(UnsupportedOperation(reason=_NOT_TRIED_AGAIN)) from None
        except StoreUnavailableError as exc:
            log_failure(exc)
            raise FailureError(Unavailable(exc.retry_after_ms)) from None
        except StoreError as exc:
            log_failure(exc)
            raise FailureError(Internal()) from None
        except OperationError as exc:
            raise FailureError(declared_failure(exc) or Internal()) from None


def _refused(refusal: CommitRefusal) -> StoreError:
    return StoreError(f"the store did not take the task: {type(refusal).__name__}")
