"""Whatever foreign code leaves in its task reaches no other request: each gets its one answer, and the daemon goes on.

A table: the kinds of code that an app may bring, and the ways of leaving something behind.
"""

from __future__ import annotations

import asyncio
from typing import Any

import anyio
import pytest

from discreet import Context, Identity
from discreet.agents import Agent, AgentCall, RequestContext, TaskEvents
from discreet.daemon.dispatch.task_pool import TaskPool
from discreet.daemon.operations.access import PARENT, Access
from discreet.errors.failures import Failure
from support.left_behind import FINE, WAYS, WAYS_OF_ASYNCIO, LeftBehind, attackable

pytestmark = [pytest.mark.anyio, pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning")]

Serving = Any
Wire = Any


@pytest.fixture(params=[*WAYS, *WAYS_OF_ASYNCIO])
def way(request: pytest.FixtureRequest, anyio_backend_name: str) -> str:
    name: str = request.param
    if name in WAYS_OF_ASYNCIO and anyio_backend_name != "asyncio":
        pytest.skip("asyncio's alone")
    return name


async def all_is_well(wire: Wire) -> None:
    """Other requests are answered as ever, before and after what was left behind takes effect; and the daemon ends well."""
    for _ in range(2):
        await wire.send(*(wire.request("app/wait", {"number": number}) for number in range(FINE)))
        assert sorted(reply["result"] for reply in await wire.receive_all(FINE)) == [*range(FINE)]
        assert "result" in await wire.call("app/fire")
    assert await wire.end() == 0


@pytest.mark.parametrize("kind", ["query", "stream", "notified", "inner"])
async def test_a_handler_leaves_nothing_to_other_requests(serving: Serving, way: str, kind: str) -> None:
    left = LeftBehind()
    app = attackable(left)

    @app.query
    async def inner(ctx: Context, way: str) -> Any:
        return await ctx.call("app/query", {"way": way})

    async with serving(app) as wire:
        request = wire.request(f"app/{kind}", {"way": way})
        if kind == "notified":
            del request["id"]
            await wire.send(request)
        else:
            await wire.send(request)
            while (reply := await wire.receive()).get("method") == "stream/event":
                pass
            assert reply["id"] == request["id"]
        await all_is_well(wire)


async def test_a_subscription_that_goes_on_leaves_nothing_to_requests_beside_it(serving: Serving, way: str) -> None:
    left = LeftBehind()
    async with serving(attackable(left)) as wire:
        calls = [wire.request("app/wait", {"number": number}) for number in range(FINE)]
        streams = [wire.request("app/goes_on", {"way": way}) for _ in range(2)]
        await wire.send(*calls[:2], streams[0], *calls[2:4], streams[1], *calls[4:])
        replies: dict[Any, Any] = {}
        while len(replies) < len(calls) + len(streams):
            reply = await wire.receive()
            if reply.get("method") != "stream/event":
                assert reply["id"] not in replies
                replies[reply["id"]] = reply
        assert [replies[call["id"]].get("result") for call in calls] == [*range(FINE)]
        await all_is_well(wire)


@pytest.mark.parametrize("ways", [("scope", "task_group"), ("scope", "scope", "scope")])
async def test_several_scopes_are_closed_the_innermost_first(serving: Serving, ways: tuple[str, ...]) -> None:
    left = LeftBehind()
    app = attackable(left)

    @app.query
    async def several() -> str:
        for each in ways:
            await left.leave(f"kept_{each}")
        return "left"

    async with serving(app) as wire:
        assert (await wire.call("app/several"))["result"] == "left"
        await all_is_well(wire)


@pytest.mark.parametrize("mode", ["inline", "queued", "provider"])
@pytest.mark.parametrize("reach", ["scope", "task"])
async def test_the_tasks_that_read_and_write_are_out_of_reach_for_code_that_runs_in_them(
    serving: Serving, anyio_backend_name: str, mode: str, reach: str
) -> None:
    left = LeftBehind()
    app = attackable(left)
    armed = mode != "provider"

    def attack() -> None:
        if reach == "scope":
            left.enter_scope()
        elif anyio_backend_name == "asyncio":
            task = asyncio.current_task()
            assert task is None

    @app.query(inline=True, **({"serial": True} if mode == "queued" else {}))
    def inline() -> None:
        attack()

    class Provider:
        def resolve(self, authorization: str) -> Identity:
            if armed:
                attack()
            return Identity("ann")

    access = Access(PARENT, Provider()) if mode == "provider" else None
    async with serving(app, access=access) as wire:
        await wire.call("version")  # until then no task reads
        armed = True
        for _ in range(3):
            reply = await wire.call("app/inline", serviceParams={"authorization": "Bearer x"})
            assert ("error" in reply) == (reach == "scope")
        armed = False
        await all_is_well(wire)


class Done:
    """A job of a pool."""

    scope: anyio.CancelScope | None = None
    ended_by: Failure | None = None
    name = "job"


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_task_that_is_cancelled_when_it_was_woken_leaves_its_job_to_another() -> None:
    """The pool itself: only in another program's event loop can code of an app find a task that waits for work."""

    async def perform(job: Done) -> None:
        done.append(job)

    done: list[Done] = []
    pool = TaskPool(perform, lambda: None)
    others = asyncio.all_tasks()
    jobs = [Done(), Done()]
    async with anyio.create_task_group() as tasks:
        pool.start(tasks)
        pool.submit(jobs[0])
        await anyio.wait_all_tasks_blocked()
        pool.submit(jobs[1])
        for task in asyncio.all_tasks() - others:
            task.cancel()
        del task  # who keeps one is told of by its references
        await anyio.wait_all_tasks_blocked()
        assert done == jobs
        tasks.cancel_scope.cancel()


async def test_a_task_runs_many_requests_that_leave_nothing(serving: Serving, anyio_backend_name: str) -> None:
    if anyio_backend_name != "asyncio":
        pytest.skip("tasks are told apart by what asyncio calls them")
    app = attackable(LeftBehind())
    names: set[int] = set()

    @app.query
    async def task() -> None:
        with anyio.move_on_after(10):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(anyio.lowlevel.checkpoint)
        async with asyncio.timeout(10):
            await asyncio.wait_for(anyio.lowlevel.checkpoint(), 10)
        names.add(id(asyncio.current_task()))

    async with serving(app) as wire:
        for _ in range(20):
            assert "result" in await wire.call("app/task")
    assert len(names) == 1


class Executor:
    """Leaves something behind where it is told to, by the text of the message, such as `execute scope`."""

    def __init__(self, left: LeftBehind) -> None:
        self._left = left

    async def execute(self, context: RequestContext, events: TaskEvents) -> None:
        where, _, way = context.text.partition(" ")
        if where == "cancel":
            await events.working()
            await anyio.sleep_forever()
        if where == "execute":
            await self._left.leave(way)
        await events.require_input("More?") if where == "ask" else await events.complete()

    async def cancel(self, context: RequestContext, events: TaskEvents) -> None:
        message = (context.task.history or ())[0]
        await self._left.leave(message.parts[0].text.partition(" ")[2])  # type: ignore[union-attr]


class Around:
    def __init__(self, left: LeftBehind, where: str) -> None:
        self._left = left
        self._where = where
        self.way = ""

    async def before(self, call: AgentCall) -> None:
        if self._where == "before" and self.way:
            await self._left.leave(self.way)

    async def after(self, call: AgentCall, outcome: object) -> None:
        if self._where == "after" and self.way:
            await self._left.leave(self.way)


def said(text: str, **more: Any) -> dict[str, Any]:
    return {"message": {"messageId": text, "role": "ROLE_USER", "parts": [{"text": text}], **more}}


@pytest.mark.parametrize("where", ["execute", "cancel", "before", "after"])
async def test_an_agent_leaves_nothing_to_other_messages(serving: Serving, way: str, where: str) -> None:
    left = LeftBehind()
    around = Around(left, where)
    agent = Agent(Executor(left), name="a", description="A.", interceptors=[around])
    async with serving(attackable(left), agent=agent) as wire:
        around.way = way
        if where == "cancel":
            begun = await wire.call(
                "SendMessage", {**said(f"cancel {way}"), "configuration": {"returnImmediately": True}}
            )
            await wire.call("CancelTask", {"id": begun["result"]["task"]["id"]})
        else:
            await wire.call("SendMessage", said(f"{where} {way}"))
        around.way = ""
        for number in range(3):
            sent = await wire.call("SendMessage", said(f"fine {number}"))
            assert sent["result"]["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
        await all_is_well(wire)
