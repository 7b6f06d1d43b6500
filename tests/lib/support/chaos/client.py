"""The client of one task: it does what the plan says, at any gateway, and comes back at another whenever something breaks."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from random import Random
from typing import Any, Final, Protocol

import msgspec

from .calls import BrokenError, Event, JsonObject, RefusedError, call, lose_answer, stream
from .plan import Plan
from .record import ENDED, WAITING, Begun, Record, Refusal, Segment, Subscriber, seen

PAUSE_SECONDS: Final = 0.2
"""Before the next attempt, where the answer does not say how long."""
LONGEST_PAUSE: Final = 5.0
LONGEST_LOSS_SECONDS: Final = 0.2
"""After so long at most, from when a message was sent, its answer is lost."""
FIRST: Final = "first"
"""Of the ids of a task's messages, the end of the first one's."""
RETRIED: Final = frozenset({"UNAVAILABLE", "OVERLOADED", "TIMEOUT", "HTTP 503", "HTTP 429"})


class Client:
    """`ports` are those of the gateways."""

    def __init__(self, plan: Plan, ports: Sequence[int], record: Record) -> None:
        self._plan = plan
        self._ports = ports
        self._record = record
        self._dice = Random(plan.work.name)
        self._group: asyncio.TaskGroup | None = None
        self._progress = 0
        self._looked: set[int] = set()
        self._answered = False

    async def run(self) -> None:
        """Until every subscriber saw the end of the task."""
        async with asyncio.TaskGroup() as self._group:
            await self._begin()
        await self._collect()

    # -- beginning ----------------------------------------------------------------------------------------------

    def _message(self, name: str, text: str, **more: str) -> JsonObject:
        message = {"messageId": f"{self._plan.work.name}/{name}", "role": "ROLE_USER", "parts": [{"text": text}]}
        return {"message": message | more}

    async def _begin(self) -> None:
        params = self._message(FIRST, msgspec.json.encode(self._plan.work).decode())
        await self._lose_answers(params)
        if self._plan.streamed:
            return await self._begin_by_stream(params)
        sent = params | {"configuration": {"returnImmediately": True}}
        task = (await self._until_answered("SendMessage", sent))["task"]
        self._acknowledged(task)
        self._subscribe(task["id"])

    async def _lose_answers(self, params: JsonObject) -> None:
        await lose_answers(self._plan.losses, params, self._ports, self._record, self._dice)

    async def _begin_by_stream(self, params: JsonObject) -> None:
        subscriber = Subscriber("")
        while not subscriber.task_id:
            await self._follow_once(subscriber, "SendStreamingMessage", params)
        await self._follow(subscriber)

    def _acknowledged(self, task: JsonObject) -> None:
        self._record.begun[task["id"]] = Begun(self._plan, task["contextId"], {f"{self._plan.work.name}/{FIRST}"})

    def _subscribe(self, task_id: str, already: int = 0) -> None:
        assert self._group is not None
        for _ in range(self._plan.subscribers - already):
            subscriber = Subscriber(task_id)
            self._record.subscribers.append(subscriber)
            self._group.create_task(self._follow(subscriber))

    async def _collect(self) -> None:
        """Read the whole log of the task, which has ended."""
        task_id = next(task_id for task_id, begun in self._record.begun.items() if begun.plan is self._plan)
        while task_id not in self._record.logs:
            gateway = self._dice.randrange(len(self._ports))
            try:
                events = stream(self._ports[gateway], "SubscribeToTask", {"id": task_id}, after=1)
                found = [noticed async for event in events if (noticed := seen(event))]
            except (BrokenError, RefusedError) as exc:
                await self._not_answered("SubscribeToTask", gateway, exc)
                if isinstance(exc, RefusedError) and exc.reason not in RETRIED:
                    return
            else:
                self._record.logs[task_id] = found

    # -- following ----------------------------------------------------------------------------------------------

    async def _follow(self, subscriber: Subscriber) -> None:
        while not subscriber.ended:
            await self._follow_once(subscriber, "SubscribeToTask", {"id": subscriber.task_id})

    async def _follow_once(self, subscriber: Subscriber, method: str, params: JsonObject) -> None:
        gateway = self._dice.randrange(len(self._ports))
        segment = Segment(gateway, time.time(), subscriber.last)
        subscriber.segments.append(segment)
        try:
            async with aclosing(stream(self._ports[gateway], method, params, after=segment.after)) as events:
                await self._read(subscriber, segment, events)
        except (BrokenError, RefusedError) as exc:
            await self._not_answered(method, gateway, exc, subscriber)
        else:
            if not subscriber.ended:  # it waits for its client, or comes to an end between two streams
                await asyncio.sleep(PAUSE_SECONDS)

    async def _read(self, subscriber: Subscriber, segment: Segment, events: AsyncIterator[Event]) -> None:
        async for event in events:
            if "task" in event.value:
                segment.snapshot = event.value["task"]
                if not subscriber.task_id:
                    subscriber.task_id = event.value["task"]["id"]
                    self._record.subscribers.append(subscriber)
                    self._acknowledged(event.value["task"])
                    self._subscribe(subscriber.task_id, already=1)
                self._notice_state(subscriber, event.value["task"]["status"]["state"])
                continue
            noticed = seen(event)
            if noticed is None:
                self._record.fail(f"{subscriber.task_id}: an event without a number, or of no kind: {event}")
                continue
            segment.seen.append(noticed)
            self._record.counts["events seen"] += 1
            if noticed.key[0] == "status":
                self._notice_state(subscriber, noticed.key[1])
            else:
                self._notice_number(subscriber.task_id, int(noticed.key[1].split()[0]))

    def _notice_state(self, subscriber: Subscriber, state: str) -> None:
        if state in ENDED:
            subscriber.ended = True
        elif state == WAITING and not self._answered:
            self._answered = True
            self._start(self._say(subscriber.task_id, "answer"))

    def _notice_number(self, task_id: str, number: int) -> None:
        """Of all subscribers, the first that sees a number does what the plan says."""
        if number <= self._progress:
            return
        self._progress = number
        if number in self._plan.look_at:
            self._start(self._look(task_id, number))
        if number == self._plan.cancel_at:
            self._start(self._cancel(task_id))
        if number == self._plan.note_at:
            self._start(self._say(task_id, "note"))

    def _start(self, doing: Any) -> None:  # Any: a coroutine
        assert self._group is not None
        self._group.create_task(doing)

    # -- calls --------------------------------------------------------------------------------------------------

    async def _say(self, task_id: str, text: str) -> None:
        params = self._message(text, text, taskId=task_id) | {"configuration": {"returnImmediately": True}}
        message_id = params["message"]["messageId"]

        async def is_there() -> bool:
            task = await self._until_answered("GetTask", {"id": task_id})
            return any(message["messageId"] == message_id for message in task["history"])

        await self._lose_answers(params)
        if await self._until_answered("SendMessage", params, done=is_there) is not None:
            self._record.begun[task_id].messages.add(message_id)

    async def _cancel(self, task_id: str) -> None:
        begun = self._record.begun[task_id]
        begun.cancel_asked = True
        answer = await self._until_answered("CancelTask", {"id": task_id})
        if answer:  # where the task came to another end meanwhile, that stands
            begun.canceled = answer["status"]["state"] == "TASK_STATE_CANCELED"
            if answer["status"]["state"] not in ENDED:
                self._record.fail(f"{task_id}: CancelTask answered with {answer['status']['state']}")

    async def _look(self, task_id: str, number: int) -> None:
        if self._dice.random() < 0.5:
            task = await self._until_answered("GetTask", {"id": task_id})
            numbers = sum(len(artifact["parts"]) for artifact in task.get("artifacts", []))
            self._record.counts["looks"] += 1
            self._record.counts["looks behind what was seen"] += numbers < number
            return
        context_id = self._record.begun[task_id].context_id
        page = await self._until_answered("ListTasks", {"contextId": context_id})
        self._record.counts["looks"] += 1
        if [task["id"] for task in page["tasks"]] != [task_id]:
            self._record.fail(f"{task_id}: ListTasks of its context has {[task['id'] for task in page['tasks']]}")

    async def _until_answered(
        self, method: str, params: JsonObject, *, done: Callable[[], Awaitable[bool]] | None = None
    ) -> Any:  # Any: the result, empty where the task has ended before
        """The result, whatever breaks meanwhile. `done` tells whether something that was not answered was done all the same."""
        while True:
            gateway = self._dice.randrange(len(self._ports))
            try:
                return await call(self._ports[gateway], method, params)
            except (BrokenError, RefusedError) as exc:
                if isinstance(exc, RefusedError) and exc.reason in ("UNSUPPORTED_OPERATION", "TASK_NOT_CANCELABLE"):
                    task = await self._until_answered(
                        "GetTask", {"id": params.get("id") or params["message"]["taskId"]}
                    )
                    if task["status"]["state"] in ENDED:
                        return None
                await self._not_answered(method, gateway, exc)
                if done is not None and await done():
                    return {}

    async def _not_answered(
        self,
        method: str,
        gateway: int,
        exc: BrokenError | RefusedError,
        subscriber: Subscriber | None = None,
    ) -> None:
        """Notes it, and waits until the next attempt. Anything that no fault explains is wrong."""
        pause: float | None = PAUSE_SECONDS
        if isinstance(exc, BrokenError):
            reason = f"broken: {exc}"
        else:
            reason, pause = exc.reason, exc.retry_after
            if reason == "UNSUPPORTED_OPERATION" and method == "SubscribeToTask" and subscriber is not None:
                task = await self._until_answered("GetTask", {"id": subscriber.task_id})
                subscriber.ended = subscriber.told = task["status"]["state"] in ENDED
            elif reason not in RETRIED and reason != "TASK_NOT_CANCELABLE":
                self._record.fail(f"{method} at gateway {gateway}: {exc}; {subscriber}"[:1000])
        self._record.refusals.append(Refusal(time.time(), reason))
        await asyncio.sleep(min(LONGEST_PAUSE, PAUSE_SECONDS if pause is None else pause))


async def lose_answers(count: int, params: JsonObject, ports: Sequence[int], record: Record, dice: Random) -> None:
    """Send a message so often, at any gateways and some at a time, without reading the answers."""

    async def lose() -> bool:
        method = dice.choice(("SendMessage", "SendStreamingMessage"))
        port, seconds = ports[dice.randrange(len(ports))], LONGEST_LOSS_SECONDS * dice.random()
        try:
            await lose_answer(port, method, params, seconds)
        except BrokenError as exc:
            record.refusals.append(Refusal(time.time(), f"broken: {exc}"))
            await asyncio.sleep(PAUSE_SECONDS)
            return False
        record.counts["answers lost"] += 1
        return True

    lost = 0
    while lost < count:
        number = min(dice.randrange(1, 4), count - lost)
        lost += sum(await asyncio.gather(*(lose() for _ in range(number))))


class Runnable(Protocol):
    async def run(self) -> None: ...


async def run_client(at: float, name: str, client: Runnable, record: Record, deadline: asyncio.Event) -> None:
    """From its time on, in seconds, until it has finished, or until the `deadline`."""
    await asyncio.sleep(at)
    running = asyncio.create_task(client.run())
    late = asyncio.create_task(deadline.wait())
    await asyncio.wait({running, late}, return_when=asyncio.FIRST_COMPLETED)
    late.cancel()
    if not running.done():
        record.unfinished.add(name)
        running.cancel()
    results = await asyncio.gather(running, return_exceptions=True)
    if isinstance(results[0], Exception):
        record.fail(f"the client of {name} failed: {json.dumps(repr(results[0]))}")
