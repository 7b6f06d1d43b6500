"""Daemons and their callers, driven by a script: what callers were told is kept, and compared with the store's logs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import anyio
import anyio.abc

from discreet.a2a.errors import EventsLost
from discreet.a2a.task import TaskDraft
from discreet.a2a.types import (
    INACTIVE,
    TERMINAL,
    TRANSITIONS,
    Message,
    Part,
    Role,
    SendConfiguration,
    SendRequest,
    StatusChanged,
    StepStored,
    StreamItem,
    Task,
    TaskCreated,
    TaskEvent,
    TaskQuery,
    TaskUpdate,
)
from discreet.agents.executor import RequestContext, TaskEvents
from discreet.agents.request_handler import RequestHandler
from discreet.agents.runtime import Runtime
from discreet.agents.stores.interface import CommitRefusal, TaskChange
from discreet.errors import FailureError, TaskNotCancelable, UnsupportedOperation

from .executors import ME
from .waits import DEADLINE_SECONDS, until


class Op(NamedTuple):
    """One step. `which` counts tasks or watchers from the last one; None is a new task."""

    kind: Literal[
        "send", "at_once", "stream", "watch", "watch_slowly", "leave", "cancel", "get", "list", "go", "end", "kill"
    ]
    which: int | None = 0
    program: str = ""
    daemon: int = 0
    steps: int = 0


class Programmed:
    """Runs the program in the message: works, publishes, waits for the gate, yields, asks, ends, fails, raises, replies. With steps: takes
    one, sleeps, asks for the next message."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def execute(self, context: RequestContext, events: TaskEvents) -> None:
        for place, step in enumerate(context.text.partition(":")[2]):
            if step in "szq":
                await self._take_step(step, events, f"{context.text} {place}")
            else:
                await self._do(step, events)

    async def _take_step(self, step: str, events: TaskEvents, name: str) -> None:
        if not self._world.steps:
            await events.working("without steps")
        elif step == "s":
            assert await events.step(name, self._first_time, events.task.id, name) == name
        elif step == "z":
            await events.sleep_for(name, 0.01)
        else:
            assert (await events.ask(name, "and?")).role is Role.USER

    async def _do(self, step: str, events: TaskEvents) -> None:
        match step:
            case "w":
                await events.working("on it")
            case "a":
                await events.artifact(self._world.new_text(), artifact_id="a", append=True)
            case "n":
                await events.artifact(self._world.new_text())
            case "p":
                await self._world.gate.wait()
            case "y":
                await anyio.lowlevel.checkpoint()
            case "i":
                await events.require_input("more?")
            case "c":
                await events.complete("done")
            case "f":
                await events.fail()
            case "j":
                await events.reject()
            case "x":
                raise RuntimeError("of the agent")
            case _ if self._world.replies and not events.task.artifacts:
                await events.reply("pong")

    async def _first_time(self, task_id: str, name: str) -> str:
        """A step that is stored does not run."""
        await anyio.lowlevel.checkpoint()
        for event in self._world.log_of(task_id):
            if isinstance(event, StepStored) and event.step.name == name:
                self._world.repeated.append(name)
        return name

    async def cancel(self, context: RequestContext, events: TaskEvents) -> None:
        await anyio.lowlevel.checkpoint()


class Logging:
    """A store, with a log of all that it committed; several stores on one file may share `logs`."""

    def __init__(self, inner: Any, logs: dict[str, list[TaskEvent]]) -> None:
        self.inner = inner
        self.logs = logs

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    async def commit(self, changes: Sequence[TaskChange]) -> Sequence[CommitRefusal | None]:
        await anyio.lowlevel.checkpoint()  # a commit takes time, in memory too
        with anyio.CancelScope(shield=True):  # what is committed must be logged here
            results: Sequence[CommitRefusal | None] = await self.inner.commit(changes)
        self._log(changes, results)
        await anyio.lowlevel.checkpoint()
        return results

    def _log(self, changes: Sequence[TaskChange], results: Sequence[CommitRefusal | None]) -> None:
        for change, refusal in zip(changes, results, strict=True):
            if refusal is None:
                log = self.logs.setdefault(change.task_id, [])
                assert change.expected_generation == len(log)
                log += change.events


class LoggingAtOnce(Logging):
    """The same for one that waits for nothing."""

    def commit_nowait(self, changes: Sequence[TaskChange]) -> Sequence[CommitRefusal | None]:
        results: Sequence[CommitRefusal | None] = self.inner.commit_nowait(changes)
        self._log(changes, results)
        return results


class Told(NamedTuple):
    """What a caller got. `items` are a snapshot and the updates after it; `whole` says that the stream ended by itself."""

    how: str
    items: list[StreamItem]
    whole: bool = True


class Running:
    """One daemon, with its callers."""

    def __init__(self, store: Any, *, replies: bool, steps: bool) -> None:
        self.store = store
        self.options = {"replies_without_task": replies, "steps": steps}
        self.ended = anyio.Event()

    async def run(self, executor: Programmed, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        async with anyio.create_task_group() as tasks:
            runtime = Runtime(tasks.start_soon, self.store, executor, None, **self.options)
            self.handler = await runtime.handler.ready()
            async with anyio.create_task_group() as self.clients:
                task_status.started()
                await anyio.sleep_forever()
            tasks.cancel_scope.cancel()
        self.ended.set()


class World:
    """The daemons and their callers. `sent` has the outcome of every message that was sent, by its text."""

    def __init__(
        self, open_store: Callable[[], Any], daemons: int, tasks: anyio.abc.TaskGroup, *, replies: bool, steps: bool
    ) -> None:
        self.replies = replies
        self.steps = steps
        self.repeated: list[str] = []
        self._open_store = open_store
        self._tasks = tasks
        self.gate = anyio.Event()
        self.told: list[Told] = []
        self.known: list[str] = []
        self.sent: dict[str, str] = {}
        self.watchers: list[anyio.CancelScope] = []
        self.unanswered = 0
        self._texts = 0
        self.daemons: list[Running | None] = [None] * daemons

    def log_of(self, task_id: str) -> Sequence[TaskEvent]:
        """What any of the daemons has committed."""
        (running, *_) = (each for each in self.daemons if each is not None)
        log: Sequence[TaskEvent] = running.store.logs.get(task_id, ())
        return log

    def new_text(self) -> str:
        self._texts += 1
        return str(self._texts)

    async def handler(self, number: int) -> RequestHandler:
        running = self.daemons[number]
        if running is None:
            running = self.daemons[number] = Running(self._open_store(), replies=self.replies, steps=self.steps)
            await self._tasks.start(running.run, Programmed(self))
        return running.handler

    async def end(self, number: int, *, kill: bool) -> None:
        running, self.daemons[number] = self.daemons[number], None
        if running is not None:
            running.store.inner.killed = kill
            running.clients.cancel_scope.cancel()  # their calls end with the daemon
            await running.ended.wait()

    def pick(self, which: int | None) -> str | None:
        return None if which is None or not self.known else self.known[-1 - which % len(self.known)]

    async def do(self, op: Op) -> None:
        handler = await self.handler(op.daemon)
        running = self.daemons[op.daemon]
        assert running is not None
        start: Any = running.clients.start_soon
        task_id = self.pick(op.which)
        match op.kind:
            case "send" | "at_once" | "stream":
                text = f"{self.new_text()}:{op.program}"
                self.sent[text] = "unknown"
                start(self._answered, self._send, handler, op.kind, text, task_id)
            case "go":
                self.gate.set()
                self.gate = anyio.Event()
            case "end" | "kill":
                await self.end(op.daemon, kill=op.kind == "kill")
            case "leave":
                if self.watchers:
                    self.watchers[-1 - (op.which or 0) % len(self.watchers)].cancel()
            case "list":
                start(self._answered, self._list, handler)
            case _ if task_id is not None:
                work = {"get": self._get, "cancel": self._cancel}.get(op.kind)
                if work is not None:
                    start(self._answered, work, handler, task_id)
                else:
                    start(self._watch, handler, task_id, op.kind == "watch_slowly")
            case _:
                pass
        for _ in range(op.steps):
            await anyio.lowlevel.checkpoint()

    # -- callers -----------------------------------------------------------------------------------------------

    async def _answered(self, work: Callable[..., Awaitable[None]], *args: object) -> None:
        self.unanswered += 1
        try:
            await work(*args)
        except FailureError as exc:
            assert isinstance(exc.failure, UnsupportedOperation | TaskNotCancelable), exc.failure
        except EventsLost:  # possible only where two daemons change a task
            assert len(self.daemons) > 1
        finally:
            self.unanswered -= 1

    def tell(self, how: str, *items: StreamItem, whole: bool = True) -> None:
        self.told.append(Told(how, [*items], whole))
        if isinstance(items[0], Task) and items[0].id not in self.known:
            self.known.append(items[0].id)

    async def _send(self, handler: RequestHandler, kind: str, text: str, task_id: str | None) -> None:
        configuration = SendConfiguration(return_immediately=kind == "at_once")
        message = Message(f"of {text}", Role.USER, (Part(text=text),), task_id=task_id)
        try:
            if kind == "stream":
                await self._collect(kind, handler.stream(SendRequest(message, configuration), ME), slowly=False)
            else:
                result = await handler.send(SendRequest(message, configuration), ME)
                self.tell(kind, result)
                self.sent[text] = "taken" if isinstance(result, Task) else "replied"
        except FailureError:
            self.sent[text] = "refused"
            raise
        if self.sent.get(text) == "taken":  # as by a caller that has lost the answer
            again = await handler.send(SendRequest(message, configuration), ME)
            assert isinstance(again, Task) and again.id == result.id
            self.tell(kind, again)

    async def _collect(self, how: str, stream: Any, *, slowly: bool) -> None:
        items: list[StreamItem] = []
        whole = False
        try:
            async for item in stream:
                if isinstance(item, TaskUpdate) and isinstance(item.event, TaskCreated):
                    item = item.event.task
                items.append(item)
                if isinstance(item, Task) and item.id not in self.known:
                    self.known.append(item.id)
                if slowly:
                    await self.gate.wait()
            whole = True
        finally:
            await stream.aclose()
            if items:
                self.tell(how, *items, whole=whole)

    async def _watch(self, handler: RequestHandler, task_id: str, slowly: bool) -> None:
        with anyio.CancelScope() as scope:
            self.watchers.append(scope)
            await self._answered(lambda: self._collect("watch", handler.subscribe(task_id, ME), slowly=slowly))

    async def _get(self, handler: RequestHandler, task_id: str) -> None:
        self.tell("get", await handler.get(task_id, ME))

    async def _cancel(self, handler: RequestHandler, task_id: str) -> None:
        task = await handler.cancel(task_id, None, ME)
        assert task.status.state in TERMINAL
        self.tell("cancel", task)

    async def _list(self, handler: RequestHandler) -> None:
        for task in (await handler.list(TaskQuery(scope="me"))).tasks:
            self.tell("list", task)

    # -- the end -----------------------------------------------------------------------------------------------

    async def settle(self) -> None:
        """Let every call end that can."""
        self.gate.set()
        await until(lambda: self.unanswered <= len([scope for scope in self.watchers if not scope.cancel_called]))
        handler = await self.handler(0)
        await until(lambda: self._all_rest(handler))

    async def _all_rest(self, handler: RequestHandler) -> bool:
        known = {*self.known}  # before the listing: more tasks may begin during it
        listed = await handler.list(TaskQuery(scope="me", page_size=100))
        assert not listed.next_page_token
        assert {task.id for task in listed.tasks} >= known
        return all(task.status.state in INACTIVE for task in listed.tasks)

    def check(self, logs: Mapping[str, Sequence[TaskEvent]]) -> None:
        """Every answer agrees with the logs, and no stored step ran again."""
        assert not self.repeated
        moments = {task_id: moments_of(log) for task_id, log in logs.items()}
        for how, items, whole in self.told:
            first, *rest = items
            if isinstance(first, Message):
                assert not rest
                continue
            assert isinstance(first, Task)
            events = [item.event for item in rest if isinstance(item, TaskUpdate)]
            log, tasks = logs[first.id], moments[first.id]
            places = [
                place
                for place, task in enumerate(tasks, 1)
                if task == first and events == log[place : place + len(events)]
            ]
            assert places, (how, first, events, log)
            self._check_end(how, tasks[places[-1] + len(events) - 1], whole)
        self._check_messages([tasks[-1] for tasks in moments.values()])

    @staticmethod
    def _check_end(how: str, last: Task, whole: bool) -> None:
        if how in ("send", "stream") and whole:
            assert last.status.state in INACTIVE
        if how == "watch" and whole:
            assert last.status.state in TERMINAL

    def _check_messages(self, tasks: Sequence[Task]) -> None:
        """An accepted message is in one history once, a refused one in none."""
        said = [part.text for task in tasks for message in task.history for part in message.parts]
        for text, outcome in self.sent.items():
            assert said.count(text) in {"taken": {1}, "unknown": {0, 1}}.get(outcome, {0}), (text, outcome)


def moments_of(log: Sequence[TaskEvent]) -> list[Task]:
    """The task after each of its events, whose order the table of states allows."""
    first = log[0]
    assert isinstance(first, TaskCreated)
    draft = TaskDraft(first.task)
    draft.apply(first)
    tasks = [first.task]
    for event in log[1:]:
        assert tasks[-1].status.state not in TERMINAL
        if isinstance(event, StatusChanged):
            assert event.status.state in TRANSITIONS[tasks[-1].status.state]
        draft.apply(event)
        tasks.append(draft.freeze())
    return tasks


async def happen(
    script: Sequence[Op], open_store: Callable[[], Any], daemons: int, *, replies: bool = False, steps: bool = False
) -> World:
    """Run a script to its end; the daemons are ended, too."""
    with anyio.fail_after(DEADLINE_SECONDS):
        async with anyio.create_task_group() as tasks:
            world = World(open_store, daemons, tasks, replies=replies, steps=steps)
            for op in script:
                await world.do(op)
            await world.settle()
            for number in range(daemons):
                await world.end(number, kill=False)
    return world
