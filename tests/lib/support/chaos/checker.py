"""Compares what clients saw and were told with what the store has in the end. Asks a daemon that was started afterwards."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Final

import msgspec

from discreet.a2a.task import NOT_EXECUTED

from .calls import BrokenError, JsonObject, RefusedError, call, stream
from .executions import History
from .record import ENDED, WAITING, Begun, Key, Record, Seen, Segment, Subscriber, seen

ASKED_AT_ONCE: Final = 16
State = tuple[int, int, str]
"""Of a task at one moment: how many numbers it has, how many messages of the agent, and its state."""


class TaskLog(msgspec.Struct):
    """A task as the store has it, and the events of its log that subscribers see."""

    task: JsonObject
    events: list[Seen]
    states: list[State]
    """`states[n]` is the task behind the first n events; empty where the store has forgotten the events."""

    @property
    def state(self) -> str:
        state: str = self.task["status"]["state"]
        return state

    @property
    def user_messages(self) -> list[str]:
        return [message["messageId"] for message in self.task["history"] if message["role"] == "ROLE_USER"]

    @property
    def history(self) -> History:
        marked = {
            message["messageId"]: message["metadata"][NOT_EXECUTED]
            for message in self.task["history"]
            if NOT_EXECUTED in message.get("metadata", {})
        }
        return History(self.state, self.user_messages, marked)


async def all_tasks(port: int) -> dict[str, JsonObject]:
    """Every task of the store, by its id, without its artifacts."""
    found: dict[str, JsonObject] = {}
    token = ""
    while True:
        page = await call(port, "ListTasks", {"pageSize": 100, "pageToken": token, "historyLength": 1})
        found |= {task["id"]: task for task in page["tasks"]}
        token = page["nextPageToken"]
        if not token:
            return found


async def until_all_ended(port: int, record: Record, seconds: float) -> dict[str, JsonObject]:
    """Every task of the store, once those that were acknowledged have ended. Those that don't are noted as wrong."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            tasks = await all_tasks(port)
        except (BrokenError, RefusedError):
            tasks = {}
        begun = record.begun.keys() | record.talks.keys()
        open_tasks = [task_id for task_id, task in tasks.items() if not _at_rest(task, task_id in begun)]
        if tasks.keys() >= begun and not open_tasks:
            return tasks
        if time.monotonic() > deadline:
            break
        await asyncio.sleep(0.5)
    for task_id in begun - tasks.keys():
        record.fail(f"{task_id}: it was acknowledged, and ListTasks does not have it")
    for task_id in open_tasks:
        known = "acknowledged" if task_id in record.begun or task_id in record.talks else "not acknowledged"
        record.fail(f"{task_id} ({known}) hangs: {tasks[task_id]['status']}")
    return tasks


def _at_rest(task: JsonObject, acknowledged: bool) -> bool:
    """A task of whose beginning no client heard may wait for input, since nobody answers it."""
    state = task["status"]["state"]
    return state in ENDED or (state == WAITING and not acknowledged)


async def check(
    port: int, record: Record, task_ids: Iterable[str], begun: Callable[[str], int], *, resuming: bool
) -> dict[str, TaskLog]:
    """Notes in the record what is wrong with these tasks. Returns them. `begun(task_id)` is how many executions may have begun."""
    logs: dict[str, TaskLog] = {}
    turns = asyncio.Semaphore(ASKED_AT_ONCE)

    async def one(task_id: str) -> None:
        async with turns:
            try:
                logs[task_id] = await _read_log(port, task_id, record.logs.get(task_id))
            except (BrokenError, RefusedError) as exc:
                if task_id in record.begun:  # nobody has collected the events of others
                    record.fail(f"{task_id}: its log can't be read: {exc}")
                return
        for text in faults_of_log(logs[task_id], begun(task_id)) if logs[task_id].states else ():
            record.fail(f"{task_id}: {text}")
        if task_id in record.begun:
            for text in faults_of_promises(logs[task_id], record.begun[task_id], resuming=resuming):
                record.fail(f"{task_id}: {text}")

    await asyncio.gather(*map(one, task_ids))
    for text in faults_of_beginnings({task_id: log.user_messages for task_id, log in logs.items()}):
        record.fail(text)
    for subscriber in record.subscribers:
        if subscriber.task_id in logs:
            for text in faults_of_subscriber(subscriber, logs[subscriber.task_id]):
                record.fail(f"{subscriber.task_id}: {text}")
    return logs


async def _read_log(port: int, task_id: str, collected: list[Seen] | None) -> TaskLog:
    """Where the store has forgotten the events of a task that ended, those that a client `collected` before."""
    task = await call(port, "GetTask", {"id": task_id})
    events = []
    if task["status"]["state"] in ENDED:  # of others the stream would not end
        params = {"id": task_id}
        try:
            events = [
                found async for event in stream(port, "SubscribeToTask", params, after=1) if (found := seen(event))
            ]
        except RefusedError as exc:
            if exc.reason != "EVENTS_LOST":
                raise
            if collected is None:  # those of a conversation: its history is all there is
                return TaskLog(task, [], [])
            events = collected
    return TaskLog(task, events, list(states_of(found.key for found in events)))


def states_of(keys: Iterable[Key]) -> Iterable[State]:
    numbers, messages, state = 0, 0, "TASK_STATE_SUBMITTED"
    yield numbers, messages, state
    for kind, text, message in keys:
        if kind == "artifact":
            numbers += 1
        else:
            state = text
            messages += bool(message)
        yield numbers, messages, state


def _state_of(task: JsonObject) -> State:
    numbers = sum(len(artifact["parts"]) for artifact in task.get("artifacts", []))
    messages = sum(message["role"] == "ROLE_AGENT" for message in task.get("history", []))
    return numbers, messages + ("message" in task["status"]), task["status"]["state"]


# -- the log ----------------------------------------------------------------------------------------------------


def faults_of_log(log: TaskLog, begun: int = 0) -> Iterable[str]:
    if log.state not in ENDED:
        return
    ids = [event.number for event in log.events]
    hidden = set(range(2, (ids or [1])[-1] + 1)) - set(ids)
    if ids != sorted(set(ids)):
        yield f"the numbers of its events are not in order: {ids}"
    if len(hidden) > len(log.user_messages) - 1 + begun:  # what begins an execution is no event for clients either
        yield f"events {sorted(hidden)} are missing, with {len(log.user_messages)} messages of its client and {begun} runs"
    if [event.key[1] in ENDED for event in log.events if event.key[0] == "status"].count(True) != 1:
        yield f"it ended more than once, or never: {log.events}"
    elif log.events[-1].key[0] != "status" or log.events[-1].key[1] != log.state:
        yield f"its last event is not its end: {log.events[-1]}"
    if log.states[-1] != _state_of(log.task):
        yield f"GetTask has {_state_of(log.task)}, its log makes {log.states[-1]}"
    parts = [part["text"] for artifact in log.task.get("artifacts", []) for part in artifact["parts"]]
    published = [event.key[1] for event in log.events if event.key[0] == "artifact"]
    if parts != published:
        yield f"GetTask has the chunks {parts}, its log {published}"
    numbers = [int(text.split()[0]) for text in published if "/" not in text]
    if numbers != list(range(1, len(numbers) + 1)):
        yield f"its numbers are {numbers}"
    runs = [run for run, _ in groupby(text.split()[-1 if "/" in text else 1] for text in published)]
    if len(runs) != len(set(runs)):
        yield f"two runs published by turns: {runs}"


# -- what was promised ------------------------------------------------------------------------------------------


def faults_of_promises(log: TaskLog, begun: Begun, *, resuming: bool) -> Iterable[str]:
    told = Counter(log.user_messages)
    for message_id in begun.messages:
        if not told[message_id]:
            yield f"message {message_id} was acknowledged, and is not in its history"
    if begun.canceled and log.state != "TASK_STATE_CANCELED":
        yield f"CancelTask was acknowledged, and it is {log.state}"
    expected = {"TASK_STATE_COMPLETED"}
    expected |= {"TASK_STATE_CANCELED"} if begun.cancel_asked else set()
    expected |= set() if resuming else {"TASK_STATE_FAILED"}
    if log.state in ENDED and log.state not in expected:
        yield f"it is {log.state}: {log.task['status'].get('message', {}).get('parts')}"
    if log.state == "TASK_STATE_FAILED" and "message" not in log.task["status"]:
        yield "it failed without a reason"
    count = log.states[-1][0]
    if log.state == "TASK_STATE_COMPLETED" and count != begun.plan.work.numbers:
        yield f"it has {count} numbers of {begun.plan.work.numbers}"


def faults_of_beginnings(histories: Mapping[str, Sequence[str]]) -> Iterable[str]:
    """A message begins one task, however often it is sent, and is in its history once. `histories` has the ids of each task's
    messages."""
    begun: dict[str, list[str]] = defaultdict(list)
    for task_id, messages in histories.items():
        begun[messages[0]].append(task_id)
        for name, count in Counter(messages).items():
            if count > 1:
                yield f"{task_id}: message {name} is in its history {count} times"
    for name, task_ids in begun.items():
        if len(task_ids) > 1:
            yield f"message {name} has begun {len(task_ids)} tasks: {', '.join(task_ids)}"


# -- subscribers ------------------------------------------------------------------------------------------------


def faults_of_subscriber(subscriber: Subscriber, log: TaskLog) -> Iterable[str]:
    for segment in subscriber.segments:
        problem = fault_of_segment(segment, log)
        if problem:
            yield f"a stream of gateway {segment.gateway} opened at {segment.opened:.3f} behind {segment.after}: {problem}"
    if not subscriber.ended:
        yield "a subscriber did not see its end"


def fault_of_segment(segment: Segment, log: TaskLog) -> str:
    """What came must be the log from one place on: behind the event that was named, or from the task as it was."""
    if not segment.seen:
        return ""
    came = [(event.number, event.key) for event in segment.seen]
    whole = [(event.number, event.key) for event in log.events]
    if segment.snapshot is not None:
        begins = [index for index, state in enumerate(log.states) if state == _state_of(segment.snapshot)]
        if not begins:
            return f"it began with a task as it never was: {_state_of(segment.snapshot)}"
    else:
        begins = [sum(number <= (segment.after or 0) for number, _ in whole)]
    if any(whole[begin : begin + len(came)] == came for begin in begins):
        return ""
    return f"it had {_short(came)} where the log has {_short(whole[begins[0] :])}"


def _short(events: Sequence[tuple[int, Key]]) -> str:
    shown = [f"{number} {key[1][:24]}" for number, key in events[:8]]
    return f"{shown} … {events[-1][0] if events else ''}"
