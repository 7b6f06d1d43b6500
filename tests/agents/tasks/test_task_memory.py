"""What tasks take in memory: counted against the budget, refused where it is too much, and freed at once; and much at once."""

from __future__ import annotations

import gc
from collections import Counter
from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec import Raw

from discreet.a2a.task import size_of_task
from discreet.a2a.types import (
    Message,
    Role,
    SendConfiguration,
    SendRequest,
    Task,
    TaskQuery,
    TaskState,
    TaskStatus,
    new_id,
)
from discreet.a2a.v10 import OMITTED
from discreet.agents import Agent, Part, RequestContext, TaskEvents
from discreet.agents.live_task import TASKS_SHARE, LiveTask, TaskMemory
from discreet.agents.methods import MAX_WAITING
from discreet.agents.request_handler import Caller
from discreet.agents.runner import Submission
from discreet.agents.stores.checks import MAX_PAGE_BYTES
from discreet.agents.stores.memory import MemoryStore
from discreet.client import Overloaded, Peer
from discreet.daemon.memory import MemoryBudget
from discreet.errors import FailureError
from discreet.errors import Overloaded as OverloadedFailure
from discreet.testing import in_memory
from support.waits import DEADLINE_SECONDS

pytestmark = pytest.mark.anyio

ME = Caller("me", "1.0")

MIB = 1 << 20


class Says:
    """Does what the words of its message say; `fill` publishes so many bytes."""

    async def execute(self, context: RequestContext, events: TaskEvents) -> None:
        for word in context.text.split():
            match word.partition("="):
                case "fill", _, size:
                    await events.artifact("x" * int(size), artifact_id="a")
                case "stay", _, _:
                    await anyio.sleep_forever()
                case "ask", _, _:
                    await events.require_input()
                case "end", _, _:
                    await events.complete()
                case _:
                    pass

    async def cancel(self, context: RequestContext, events: TaskEvents) -> None:
        """There is nothing to clean up."""


def agent() -> Agent:
    return Agent(Says(), name="says", description="Says a lot.")


def message(text: str, task_id: str | None = None) -> Message:
    return Message(new_id(), Role.USER, (Part(text=text),), task_id=task_id)


def v1(text: str, **configuration: Any) -> dict[str, Any]:
    said = {"messageId": new_id(), "role": "ROLE_USER", "parts": [{"text": text}]}
    return {"message": said, "configuration": configuration}


# -- what is counted ----------------------------------------------------------------------------------------------


async def test_everything_that_was_counted_is_given_back(serving: Any) -> None:
    budget = MemoryBudget(64 * MIB)
    store = MemoryStore(budget=budget)
    memory = TaskMemory(budget, free=store.free)
    async with serving(Says(), store, memory=memory) as handler:
        for text in ("fill=100000 fill=1000 end", "ask", "fill=100000 end"):
            await handler.send(SendRequest(message(text)), ME)
        parked = await handler.send(SendRequest(message("ask")), ME)
        assert isinstance(parked, Task)
        async for _ in handler.stream(SendRequest(message("fill=5000 end", parked.id)), ME):
            pass
        tasks, their_last_events = 105_000, 206_000
        assert tasks + their_last_events < budget.by_kind()["tasks"] < tasks + their_last_events + 25_000
        store.free(MIB)
        assert budget.by_kind()["tasks"] < 10_000  # the one that waits for its caller
        left = (await handler.list(TaskQuery(scope="me"))).tasks
        assert [task.status.state for task in left] == [TaskState.INPUT_REQUIRED]
        await handler.cancel(left[0].id, None, ME)
        store.free(MIB)
    assert budget.by_kind()["tasks"] == 0


def test_data_weighs_what_its_decoded_form_takes() -> None:
    empty = [[] for _ in range(10_000)]
    task = Task("t", "c", TaskStatus(TaskState.SUBMITTED), history=(Message("m", Role.USER, (Part(data=empty),)),))
    assert size_of_task(task) > 10_000 * 56


async def test_ended_tasks_make_room_and_others_do_not() -> None:
    size = 2 * MIB
    async with in_memory(agent(), max_memory=16 * MIB, drain_timeout=0.1) as peer:
        for _ in range(20):
            ended = await peer.call("SendMessage", v1(f"fill={size} end", historyLength=0))
            assert ended["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
        failed = await fill_with_tasks_that_stay(peer, size)
        assert failed["status"]["message"]["parts"][0]["text"] == "Server overloaded"
        with pytest.raises(Overloaded):
            await peer.call("SendMessage", v1("x" * size))
        stays = (await peer.call("ListTasks", {"status": "TASK_STATE_SUBMITTED"}))["tasks"]
        assert 2 <= len(stays) <= 4
        for task in stays:
            await peer.call("CancelTask", {"id": task["id"]})
        assert (await peer.call("SendMessage", v1("x" * MIB + " end")))["task"]["status"][
            "state"
        ] == "TASK_STATE_COMPLETED"


async def fill_with_tasks_that_stay(peer: Peer, size: int) -> Any:
    """The first task that the memory has no room for."""
    while True:
        sent = await peer.call("SendMessage", v1(f"fill={size} stay", returnImmediately=True))
        with anyio.fail_after(DEADLINE_SECONDS):
            while "artifacts" not in (task := await peer.call("GetTask", {"id": sent["task"]["id"]})):
                if task["status"]["state"] == "TASK_STATE_FAILED":
                    return task


async def test_a_message_that_does_not_fit_is_refused_and_leaves_nothing(serving: Any) -> None:
    budget = MemoryBudget(MIB)
    store = MemoryStore(budget=budget)
    executed: list[str] = []

    class Notes(Says):
        async def execute(self, context: RequestContext, events: TaskEvents) -> None:
            executed.append(context.text[:3])
            await super().execute(context, events)

    async with serving(Notes(), store, memory=TaskMemory(budget, free=store.free)) as handler:
        parked = await handler.send(SendRequest(message("ask")), ME)
        assert isinstance(parked, Task)
        large = "x" * int(MIB * TASKS_SHARE / 2)
        for text, task_id in ((large, None), (large, parked.id)):
            for immediately in (False, True):
                with pytest.raises(FailureError) as refused:
                    configuration = SendConfiguration(return_immediately=immediately)
                    await handler.send(SendRequest(message(text, task_id), configuration), ME)
                assert isinstance(refused.value.failure, OverloadedFailure)
        assert executed == ["ask"]
        assert await handler.get(parked.id, ME) == parked


# -- what is freed ------------------------------------------------------------------------------------------------


async def test_executions_leave_no_cycles_behind(serving: Any) -> None:
    kinds = (Submission, LiveTask, TaskEvents, RequestContext)

    def alive() -> Counter[str]:
        return Counter(type(each).__name__ for each in gc.get_objects() if type(each) in kinds)

    async with serving(Says()) as handler:
        parked = await handler.send(SendRequest(message("ask")), ME)
        assert isinstance(parked, Task)
        gc.collect()
        gc.disable()
        try:
            before = alive()
            for turn in range(200):
                text, task_id = (("ask", parked.id), ("end", None))[turn % 2]
                if turn % 5:
                    await handler.send(SendRequest(message(text, task_id)), ME)
                else:
                    async for _ in handler.stream(SendRequest(message(text, task_id)), ME):
                        pass
            grown = alive() - before
        finally:
            gc.enable()
        assert all(count <= 4 for count in grown.values()), grown


# -- pages --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # what is counted is the same on each loop
@pytest.mark.parametrize("durable", [False, True])
async def test_a_page_is_bounded_in_bytes_and_all_pages_together_have_every_task(durable: bool, tmp_path: Any) -> None:
    store = f"sqlite:{tmp_path}/tasks.db" if durable else "memory"
    async with in_memory(agent(), store=store) as peer:
        ids = []
        for size in (3 * MIB, 1, 3 * MIB, 3 * MIB, 3 * MIB, 1, 6 * MIB, 6 * MIB):
            sent = await peer.call("SendMessage", v1(f"fill={size} end", historyLength=0))
            ids.append(sent["task"]["id"])
        found: list[str] = []
        params: dict[str, Any] = {"includeArtifacts": True}
        pages = 0
        while True:
            listed = await peer.call("ListTasks", params)
            assert sum(len(task["artifacts"][0]["parts"][0]["text"]) for task in listed["tasks"]) <= MAX_PAGE_BYTES
            assert listed["totalSize"] == len(ids)
            found += [task["id"] for task in listed["tasks"]]
            pages += 1
            if not listed["nextPageToken"]:
                break
            params["pageToken"] = listed["nextPageToken"]
        assert found == ids[::-1]
        assert pages == 3


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # what is counted is the same on each loop
async def test_a_page_whose_json_is_larger_than_what_is_stored_is_bounded_too() -> None:
    class Escapes(Says):
        async def execute(self, context: RequestContext, events: TaskEvents) -> None:
            await events.artifact("\x00" * (MIB // 2))  # six characters each in JSON
            await events.complete()

    async with in_memory(Agent(Escapes(), name="escapes", description="Says nothing.")) as peer:
        for _ in range(8):
            await peer.call("SendMessage", v1("go", historyLength=0))
        listed = await peer.call("ListTasks", {"includeArtifacts": True})
        assert 1 <= len(listed["tasks"]) <= 3
        assert listed["nextPageToken"]


async def test_a_task_too_large_for_a_page_comes_without_contents_and_says_so() -> None:
    async with in_memory(agent()) as peer:
        sent = await peer.call("SendMessage", v1(f"fill={MAX_PAGE_BYTES} end", historyLength=0))
        (task,) = (await peer.call("ListTasks", {"includeArtifacts": True}))["tasks"]
        assert task["id"] == sent["task"]["id"]
        assert task["status"]["state"] == "TASK_STATE_COMPLETED"
        assert task["metadata"] == {OMITTED: ["artifacts", "history"]}
        assert "artifacts" not in task
        whole = await peer.call("GetTask", {"id": task["id"]})
        assert len(whole["artifacts"][0]["parts"][0]["text"]) == MAX_PAGE_BYTES


MIB = 1024 * 1024


# -- much at once -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # what is counted is the same on each loop
async def test_a_burst_of_quick_messages_is_answered_whatever_its_size() -> None:
    states: list[str] = []

    async def send(peer: Peer) -> None:
        result = await peer.call("SendMessage", v1("end"))
        states.append(result["task"]["status"]["state"])

    async with in_memory(agent(), timeout=DEADLINE_SECONDS) as peer, anyio.create_task_group() as senders:
        for _ in range(2 * MAX_WAITING):
            senders.start_soon(send, peer)
    assert states == ["TASK_STATE_COMPLETED"] * (2 * MAX_WAITING)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # what is counted is the same on each loop
async def test_messages_beyond_a_thousand_that_never_end_are_refused_and_other_methods_go_on() -> None:
    refused: list[int] = []
    extra = 20

    async def send(peer: Peer) -> None:
        try:
            await peer.call("SendMessage", v1("stay"))
        except Overloaded:
            refused.append(1)

    async with (
        in_memory(agent(), timeout=DEADLINE_SECONDS, drain_timeout=0.1) as peer,
        anyio.create_task_group() as senders,
    ):
        for _ in range(MAX_WAITING + extra):
            senders.start_soon(send, peer)
        listed: dict[str, Any] = {"totalSize": 0}
        with anyio.fail_after(DEADLINE_SECONDS):
            while listed["totalSize"] < MAX_WAITING:
                listed = await peer.call("ListTasks", {"pageSize": 1})
            while len(refused) < extra:
                await peer.call("GetTask", {"id": listed["tasks"][0]["id"]})
        assert len(refused) == extra
        canceled = await peer.call("CancelTask", {"id": listed["tasks"][0]["id"]})
        assert canceled["status"]["state"] == "TASK_STATE_CANCELED"
        senders.cancel_scope.cancel()


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # what is counted is the same on each loop
@pytest.mark.parametrize(
    ("method", "params"), [("GetTask", {}), ("tasks/get", {}), ("ListTasks", {"includeArtifacts": True})]
)
async def test_many_reads_of_large_stored_tasks_wait_for_their_reader_and_none_is_refused(
    tmp_path: Path, method: str, params: dict[str, Any]
) -> None:
    sizes: list[int] = []
    count, budget = 64, 16 * MIB

    async def read(peer: Peer, task: str) -> None:
        result = await peer.call(method, params or {"id": task}, type=Raw)
        sizes.append(len(bytes(result)))

    store = f"sqlite:{tmp_path / 'tasks.db'}"
    async with in_memory(agent(), timeout=DEADLINE_SECONDS, max_memory=budget, store=store) as peer:
        task = (await peer.call("SendMessage", v1(f"fill={MIB} end")))["task"]["id"]
        async with anyio.create_task_group() as readers:
            for _ in range(count):
                readers.start_soon(read, peer, task)
    assert len(sizes) == count
    assert sum(sizes) >= 4 * budget
