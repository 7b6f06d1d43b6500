"""Around the agent's methods: interceptors, cancelled calls, many waiting calls, faulty agents, shutdown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from discreet import OperationError
from discreet.a2a.types import Task, TaskPage
from discreet.agents import AgentCall, CallResult
from discreet.client import OperationTimedOut, Peer, RemoteError
from discreet.errors import Cancelled, DomainFailure, FailureError, TaskNotFound
from discreet.testing import in_memory
from support.waits import DEADLINE_SECONDS, until
from support.works import Works, agent, code_of, v1

pytestmark = pytest.mark.anyio

UNKNOWN = "00000000-0000-4000-8000-000000000000"


# -- interceptors --------------------------------------------------------------------------------------------------


class Declined(OperationError, code="DECLINED", http_status=409):
    """Not now"""


class Notes:
    """Records the calls; raises what the test says."""

    def __init__(self, name: str, notes: list[tuple[str, object]], fault: BaseException | None = None) -> None:
        self._name = name
        self._notes = notes
        self._fault = fault

    async def before(self, call: AgentCall) -> None:
        self._notes.append((self._name, call.method))
        if self._fault is not None:
            raise self._fault

    async def after(self, call: AgentCall, outcome: object) -> None:
        self._notes.append((self._name, type(outcome)))
        raise RuntimeError("changes nothing")


class Hangs:
    """An interceptor whose `before` or `after` never returns."""

    def __init__(self, where: str) -> None:
        self._where = where

    async def before(self, call: AgentCall) -> None:
        if self._where == "before":
            await anyio.sleep_forever()

    async def after(self, call: AgentCall, outcome: object) -> None:
        if self._where == "after":
            await anyio.sleep_forever()


@pytest.mark.parametrize("method", ["SendMessage", "GetTask"])
async def test_an_interceptor_that_hangs_is_bounded_by_the_request_timeout(method: str) -> None:
    hanging = {where: agent(interceptors=[Hangs(where)]) for where in ("before", "after")}
    params: dict[str, Any] = {"id": "none"} if method == "GetTask" else v1("end")
    async with in_memory(hanging["before"], request_timeout=0.1) as peer:
        with pytest.raises(OperationTimedOut):
            await peer.call(method, params)
    async with in_memory(hanging["after"], request_timeout=0.1) as peer:
        if method == "SendMessage":
            assert (await peer.call(method, params))["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
        else:
            with pytest.raises(RemoteError):
                await peer.call(method, params)


async def test_interceptors_run_before_calls_in_their_order_and_after_them_in_reverse() -> None:
    notes: list[tuple[str, object]] = []
    works = Works()
    async with in_memory(agent(works, interceptors=[Notes("a", notes), Notes("b", notes)])) as peer:
        await peer.call("SendMessage", v1())
        assert notes == [("a", "SendMessage"), ("b", "SendMessage"), ("b", CallResult), ("a", CallResult)]
        notes.clear()
        assert await code_of(peer.call("tasks/cancel", {"id": UNKNOWN})) == -32001
        assert notes == [("a", "tasks/cancel"), ("b", "tasks/cancel"), ("b", TaskNotFound), ("a", TaskNotFound)]
        notes.clear()
        works.go = anyio.Event()
        async with peer.subscribe("SendStreamingMessage", v1("work wait end"), timeout=DEADLINE_SECONDS) as stream:
            await anext(stream)
            assert [name for name, _ in notes] == ["a", "b"]
            works.go.set()
            async for _ in stream:
                pass
        assert notes[2:] == [("b", CallResult), ("a", CallResult)]


@pytest.mark.parametrize(
    ("fault", "code", "outcome"),
    [
        (Declined(), -32000, DomainFailure),
        (FailureError(TaskNotFound()), -32001, TaskNotFound),
        (RuntimeError("x"), -32603, None),
    ],
    ids=["declared", "failure", "raised"],
)
async def test_an_interceptor_that_refuses_a_call_ends_it_and_those_before_it_get_the_outcome(
    fault: BaseException, code: int, outcome: type | None
) -> None:
    notes: list[tuple[str, object]] = []
    works = Works()
    interceptors = [Notes("a", notes), Notes("b", notes, fault), Notes("c", notes)]
    async with in_memory(agent(works, interceptors=interceptors)) as peer:
        assert await code_of(peer.call("SendMessage", v1("wait"))) == code
        assert [name for name, _ in notes] == ["a", "b", "a"]
        assert outcome in (None, notes[-1][1])
        assert works.waiting == 0


async def test_interceptors_get_the_outcome_of_a_cancelled_call() -> None:
    notes: list[tuple[str, object]] = []
    works = Works()
    async with in_memory(agent(works, interceptors=[Notes("a", notes)])) as peer:
        async with anyio.create_task_group() as calls:
            calls.start_soon(peer.call, "SendMessage", v1("wait end"))
            await until(lambda: works.waiting)
            calls.cancel_scope.cancel()
        await until(lambda: len(notes) == 2)
        assert notes[1] == ("a", Cancelled)
        works.go.set()


class Changes:
    """An interceptor that makes something else of each result."""

    def __init__(self, change: Callable[[Any], object]) -> None:
        self._change = change

    async def before(self, call: AgentCall) -> None: ...

    async def after(self, call: AgentCall, outcome: object) -> Any:
        return self._change(outcome)


def without_artifacts(outcome: Any) -> object:
    match outcome:
        case CallResult(Task() as task):
            return CallResult(replace(task, artifacts=()))
        case CallResult(TaskPage() as page):
            return CallResult(replace(page, tasks=tuple(replace(task, artifacts=()) for task in page.tasks)))
    return None


async def test_what_an_interceptor_makes_of_a_result_is_what_the_caller_gets_and_what_is_stored_stays() -> None:
    seen: list[Any] = []
    hides = True
    last = Changes(lambda outcome: seen.append(outcome.result))
    first = Changes(lambda outcome: without_artifacts(outcome) if hides else None)
    async with in_memory(agent(Works(), interceptors=[last, first])) as peer:
        sent = (await peer.call("SendMessage", v1("say end")))["task"]
        got = await peer.call("GetTask", {"id": sent["id"]})
        listed = (await peer.call("ListTasks", {"includeArtifacts": True}))["tasks"]
        assert [each.get("artifacts", []) for each in (sent, got, *listed)] == [[], [], []]
        assert [getattr(each, "artifacts", None) for each in seen] == [(), (), None]
        hides = False
        assert (await peer.call("GetTask", {"id": sent["id"]}))["artifacts"]


@pytest.mark.parametrize(
    "change",
    [
        lambda outcome: CallResult("text"),
        lambda outcome: CallResult(None),
        lambda outcome: outcome.result,
        lambda outcome: CallResult(replace(outcome.result, id="another")),
        lambda outcome: CallResult(replace(outcome.result, artifacts=1)),
        lambda outcome: CallResult(replace(outcome.result, history=("no message",))),
    ],
    ids=["type", "nothing", "no result", "id", "artifacts", "history"],
)
async def test_a_change_that_is_no_result_of_the_method_is_an_internal_error(
    change: Callable[[Any], object], capfd: pytest.CaptureFixture[str]
) -> None:
    async with in_memory(agent(Works(), interceptors=[Changes(change)])) as peer:
        assert await code_of(peer.call("SendMessage", v1("end"))) == -32603
    (line,) = [line for line in capfd.readouterr().err.splitlines() if "event=interceptor.wrong_result" in line]
    assert "interceptor=Changes" in line and "method=SendMessage" in line and "expected=Task" in line


async def test_a_failure_can_not_be_changed_into_a_result(capfd: pytest.CaptureFixture[str]) -> None:
    async with in_memory(agent(Works(), interceptors=[Changes(lambda outcome: CallResult(None))])) as peer:
        assert await code_of(peer.call("GetTask", {"id": UNKNOWN})) == -32001
    assert "event=interceptor.wrong_result" in capfd.readouterr().err


# -- cancelled calls, and many of them -----------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["SendMessage", "SendStreamingMessage"])
async def test_cancelling_a_call_leaves_the_task_alone(method: str) -> None:
    works = Works()
    async with in_memory(agent(works)) as peer:

        async def listen() -> None:
            async for _ in peer.subscribe(method, v1("work wait say end")):
                pass

        async with anyio.create_task_group() as calls:
            calls.start_soon(*((peer.call, method, v1("work wait say end")) if method == "SendMessage" else (listen,)))
            await until(lambda: works.waiting)
            calls.cancel_scope.cancel()
        (task,) = (await peer.call("ListTasks", {}))["tasks"]
        assert task["status"]["state"] == "TASK_STATE_WORKING"
        async with peer.subscribe("SubscribeToTask", {"id": task["id"]}, timeout=DEADLINE_SECONDS) as stream:
            assert "task" in await anext(stream)
            works.go.set()
            assert [next(iter(each)) async for each in stream] == ["artifactUpdate", "statusUpdate"]


async def test_many_waiting_calls_block_no_other() -> None:
    works = Works()
    ended: list[Any] = []

    async def send(peer: Peer) -> None:
        ended.append(await peer.call("SendMessage", v1("work wait end")))

    async with in_memory(agent(works), max_concurrency=64) as peer, anyio.create_task_group() as calls:
        for _ in range(100):
            calls.start_soon(send, peer)
        await until(lambda: works.waiting == 100)
        tasks = (await peer.call("ListTasks", {"pageSize": 100}))["tasks"]
        assert len(tasks) == 100
        for task in tasks[:50]:
            assert (await peer.call("GetTask", {"id": task["id"]}))["status"]["state"] == "TASK_STATE_WORKING"
            assert (await peer.call("CancelTask", {"id": task["id"]}))["status"]["state"] == "TASK_STATE_CANCELED"
        works.go.set()
        await until(lambda: len(ended) == 100)
        states = [each["task"]["status"]["state"] for each in ended]
        assert (states.count("TASK_STATE_CANCELED"), states.count("TASK_STATE_COMPLETED")) == (50, 50)


async def test_pages_go_on_where_the_one_before_ended_whatever_comes_in_between() -> None:
    async with in_memory(agent()) as peer:
        sent = [(await peer.call("SendMessage", v1("say end")))["task"]["id"] for _ in range(7)]
        page = await peer.call("ListTasks", {"pageSize": 3, "includeArtifacts": True})
        seen = page["tasks"]
        while page["nextPageToken"]:
            await peer.call("SendMessage", v1("ask"))
            page = await peer.call("ListTasks", {"pageSize": 3, "pageToken": page["nextPageToken"]})
            seen += page["tasks"]
        assert [task["id"] for task in seen] == sent[::-1]
        assert ["artifacts" in task for task in seen] == [True] * 3 + [False] * 4
        parked = await peer.call("ListTasks", {"status": "TASK_STATE_INPUT_REQUIRED"})
        assert parked["totalSize"] == len(parked["tasks"]) == 2
        context = parked["tasks"][0]["contextId"]
        assert (await peer.call("ListTasks", {"contextId": context}))["totalSize"] == 1
        latest = parked["tasks"][0]["status"]["timestamp"]
        assert latest in {
            task["status"]["timestamp"]
            for task in (await peer.call("ListTasks", {"statusTimestampAfter": latest}))["tasks"]
        }
        assert await code_of(peer.call("ListTasks", {"pageToken": "made up"})) == -32602


# -- faulty agents -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["exit", "numbers", "tuples", "nothing", "state", "surprise"])
async def test_whatever_an_agent_does_its_task_has_failed_and_the_others_go_on(word: str) -> None:
    async with in_memory(agent()) as peer:
        for first in (word, f"work say {word} end"):
            with anyio.fail_after(DEADLINE_SECONDS):
                task = (await peer.call("SendMessage", v1(first)))["task"]
            assert task["status"]["state"] == "TASK_STATE_FAILED"
            assert task["status"]["message"]["parts"] == [{"text": "The agent has failed."}]
            assert await peer.call("GetTask", {"id": task["id"]}) == task
        assert (await peer.call("ListTasks", {}))["totalSize"] == 2
        assert (await peer.call("SendMessage", v1()))["task"]["status"]["state"] == "TASK_STATE_COMPLETED"


async def test_tasks_that_still_run_at_shutdown_do_not_delay_it_and_their_senders_are_answered() -> None:
    works = Works()
    codes: list[int] = []

    async def send(peer: Peer) -> None:
        codes.append(await code_of(peer.call("SendMessage", v1("work wait end"))))

    with anyio.fail_after(DEADLINE_SECONDS):
        async with anyio.create_task_group() as calls, in_memory(agent(works), drain_timeout=0.2) as peer:
            calls.start_soon(send, peer)
            await until(lambda: works.waiting)
            await peer.call("shutdown")
            assert await code_of(peer.call("SendMessage", v1())) == -32000
            await until(lambda: codes)
    assert codes == [-32000]
