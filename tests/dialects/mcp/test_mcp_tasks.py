"""The extension `io.modelcontextprotocol/tasks`: tools that run as tasks, which are stored before they are told of."""

from __future__ import annotations

import json
import threading
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import anyio
import pytest

from discreet import ClientRefused, Context, DeclarationError, OperationError, Service, mcp
from discreet.agents import Agent
from discreet.agents.task_backend import MAX_OPEN
from discreet.daemon.operations.access import Access
from discreet.daemon.operations.identity import Identity
from support.daemon_wire import Wire
from support.mcp_wire import MCP, MODERN, McpClient
from support.waits import DEADLINE_SECONDS, until

pytestmark = pytest.mark.anyio

EXTENSION = "io.modelcontextprotocol/tasks"
ABLE = {"_meta": {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}, "extensions": {EXTENSION: {}}}}}
UNABLE = {"_meta": {"io.modelcontextprotocol/clientCapabilities": {}}}


class Bad(OperationError, code="BAD"):
    """It is bad."""

    why: str


LONG = 600.0
"""Seconds that a user may take."""


def form(text: str) -> dict[str, Any]:
    """A question."""
    schema = {"type": "object", "properties": {"it": {"type": "string"}}, "required": ["it"]}
    return {"message": text, "requestedSchema": schema}


def accepted(it: str = "yes") -> dict[str, Any]:
    return {"action": "accept", "content": {"it": it}}


class Works:
    """A service whose tools wait until `going` is set. `runs` are those that have begun."""

    def __init__(self) -> None:
        self.going = anyio.Event()
        self.opened = threading.Event()
        self.runs: list[str] = []
        self.service = service = Service("", version="1")

        @service.query(task="optional")
        async def wait(name: str) -> dict[str, str]:
            self.runs.append(name)
            await self.going.wait()
            return {"name": name}

        @service.mutation(task="required", errors=[Bad])
        def add(a: int, b: int) -> int:
            if a == b:
                raise Bad(why="the same")
            return a + b

        @service.mutation(task="optional")
        def crash() -> None:
            raise ValueError("a secret")

        @service.mutation(task="required")
        async def erase(path: str, sure: Annotated[bool, mcp.Ask("Sure?")]) -> str:
            return f"{path} {sure}"

        @service.subscription(task="optional")
        async def count(to: int) -> AsyncIterator[int]:
            for number in range(to):
                yield number

        @service.query
        def plain() -> str:
            return "plain"

        @service.query(task="optional")
        def slowly(ctx: Context, told: Any) -> None:
            ctx.progress(told)
            self.opened.wait(DEADLINE_SECONDS)

        @service.mutation(task="optional", scopes=["admin"])
        def close() -> None: ...

        @service.mutation(task="optional", idempotent=True)
        async def book(ctx: Context, room: str) -> dict[str, Any]:
            self.runs.append(room)
            name = await ctx.request("elicitation/create", form("Name?"), timeout=LONG)
            sure = await ctx.request("elicitation/create", form(f"{room}?"), timeout=LONG)
            return {"name": name["content"]["it"], "sure": sure["action"], "client": ctx.client.name}

        @service.query(task="required")
        async def both(ctx: Context) -> list[str]:
            answers: dict[str, str] = {}

            async def ask(text: str) -> None:
                answer = await ctx.request("elicitation/create", form(text), timeout=LONG)
                answers[text] = answer["action"]

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask, "one")
                tasks.start_soon(ask, "two")
            return [answers["one"], answers["two"]]

        @service.query(task="optional")
        def in_a_thread(ctx: Context) -> str:
            return str(ctx.request_blocking("roots/list", timeout=LONG)["roots"][0]["uri"])

        @service.query(task="optional")
        async def impatient(ctx: Context) -> str:
            try:
                await ctx.request("elicitation/create", form("Quick?"), timeout=0.01)
            except TimeoutError:
                await self.going.wait()
            return "late"

        @service.query(task="optional")
        async def unlimited(ctx: Context) -> bool:
            return ctx.time_left is None

        @service.query(task="optional", timeout=60)
        async def limited(ctx: Context) -> bool:
            return ctx.time_left is None

        @service.query(task="optional")
        async def curious(ctx: Context, count: int) -> None:
            async with anyio.create_task_group() as tasks:
                for number in range(count):
                    tasks.start_soon(lambda text: ctx.request("elicitation/create", form(text)), str(number))

        @service.query(task="optional")
        async def unable(ctx: Context, method: str) -> str:
            try:
                await ctx.request(method, {})
            except ClientRefused as exc:
                return str(exc.code)
            return "asked"


@pytest.fixture
def works() -> Works:
    return Works()


@asynccontextmanager
async def modern(serving: Any, *hosted: Any, **settings: Any) -> AsyncGenerator[McpClient]:
    async with serving(*hosted, **MCP, **settings) as wire:
        yield McpClient(wire, MODERN)


async def begun(client: McpClient, tool: str, **arguments: Any) -> str:
    """The id of a task that a tool has become."""
    result = await client.tool(tool, arguments, **ABLE)
    assert (result["resultType"], result["status"]) == ("task", "working")
    return str(result["taskId"])


async def status(client: McpClient, task_id: str) -> dict[str, Any]:
    answer: dict[str, Any] = await client.call("tasks/get", {"taskId": task_id, **ABLE})
    result: dict[str, Any] = answer["result"]
    assert (result["resultType"], result["taskId"]) == ("complete", task_id)
    return result


async def ended(client: McpClient, task_id: str) -> dict[str, Any]:
    found: list[dict[str, Any]] = []

    async def has_ended() -> bool:
        found[:] = [await status(client, task_id)]
        return found[0]["status"] not in ("working", "input_required")

    await until(has_ended)
    return found[0]


async def test_a_tool_becomes_a_task_which_is_there_before_it_is_told_of(serving: Any, works: Works) -> None:
    async with modern(serving, works.service) as client:
        discovered = (await client.call("server/discover"))["result"]
        assert discovered["capabilities"]["extensions"] == {EXTENSION: {}}
        task = await begun(client, "wait", name="a")
        first = await status(client, task)
        assert (first["status"], first["ttlMs"], "result" in first) == ("working", None, False)
        works.going.set()
        last = await ended(client, task)
        assert last["status"] == "completed"
        assert last["result"]["structuredContent"] == {"name": "a"}
        assert last["createdAt"] == first["createdAt"] <= last["lastUpdatedAt"]
        assert last["ttlMs"] >= 86_400_000
        assert works.runs == ["a"]


async def test_the_end_of_a_task_is_what_the_tool_would_have_answered(serving: Any, works: Works) -> None:
    async with modern(serving, works.service) as client:
        done = await ended(client, await begun(client, "add", a=1, b=2))
        assert done["result"] == {"content": [{"type": "text", "text": "3"}], "structuredContent": {"result": 3}}
        bad = await ended(client, await begun(client, "add", a=2, b=2))
        assert bad["status"] == "completed"
        assert bad["result"]["isError"] is True
        assert bad["result"]["structuredContent"] == {"code": "BAD", "retryable": False, "details": {"why": "the same"}}
        crashed = await ended(client, await begun(client, "crash"))
        assert crashed["result"]["structuredContent"] == {"code": "INTERNAL", "retryable": False}
        assert "secret" not in str(crashed)
        events = await ended(client, await begun(client, "count", to=3))
        assert events["result"]["structuredContent"] == {"result": [0, 1, 2]}


async def test_who_can_take_no_task_waits_or_is_refused(serving: Any, works: Works) -> None:
    works.going.set()
    async with modern(serving, works.service) as client:
        waited = await client.tool("wait", {"name": "a"}, **UNABLE)
        assert waited["structuredContent"] == {"name": "a"}
        needed = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
        for method, params in (
            ("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}}),
            ("tasks/get", {"taskId": "a"}),
            ("tasks/cancel", {"taskId": "a"}),
            ("tasks/update", {"taskId": "a", "inputResponses": {}}),
        ):
            error = (await client.call(method, {**params, **UNABLE}))["error"]
            assert (error["code"], error["data"]) == (-32021, needed)


async def test_the_log_names_the_operation_of_a_call_that_begins_no_task(
    serving: Any, works: Works, logged: Any
) -> None:
    async with modern(serving, works.service) as client:
        called = await client.call("tools/call", {"name": "add", "arguments": {"a": "x"}, **ABLE})
        assert called["result"]["isError"]
    assert [fields["method"] for name, fields in logged() if name == "request.failed"] == ["add"]


async def test_a_client_of_an_earlier_revision_waits(serving: Any, works: Works) -> None:
    async with serving(works.service, **MCP) as wire:
        client = McpClient(wire)
        await client.begin()
        assert (await client.tool("add", {"a": 1, "b": 2}))["structuredContent"] == {"result": 3}
        assert (await client.call("tasks/get", {"taskId": "a"}))["error"]["code"] == -32601  # tasks of another kind


async def test_a_tool_without_task_never_becomes_one(serving: Any, works: Works) -> None:
    async with modern(serving, works.service) as client:
        assert (await client.tool("plain", **ABLE))["resultType"] == "complete"
    async with modern(serving, Service("", version="1")) as client:
        assert "extensions" not in (await client.call("server/discover"))["result"]["capabilities"]
        assert (await client.call("tasks/get", {"taskId": "a", **ABLE}))["error"]["code"] == -32601


async def test_what_is_wrong_is_told_before_there_is_a_task(serving: Any, works: Works) -> None:
    async with modern(serving, works.service) as client:
        wrong = await client.tool("add", {"a": 1}, **ABLE)
        assert wrong["structuredContent"]["details"] == {
            "param": "arguments.b",
            "expected": "integer",
            "received": "missing",
        }
        for method in ("tasks/get", "tasks/cancel", "tasks/update"):
            params = {"taskId": "no-such", **({"inputResponses": {}} if method == "tasks/update" else {}), **ABLE}
            error = (await client.call(method, params))["error"]
            assert (error["code"], error["data"]["param"]) == (-32602, "taskId")


async def test_the_user_is_asked_before_the_task_begins(serving: Any, works: Works) -> None:
    async with modern(serving, works.service) as client:
        asked = await client.tool("erase", {"path": "a"}, **ABLE)
        assert (asked["resultType"], "taskId" in asked) == ("input_required", False)
        answers = {"sure": {"action": "accept", "content": {"sure": True}}}
        more = {"requestState": asked["requestState"], "inputResponses": answers}
        begun = await client.tool("erase", {"path": "a"}, **more, **ABLE)
        last = await ended(client, begun["taskId"])
        assert last["result"]["structuredContent"] == {"result": "a True"}


async def test_a_task_is_cancelled_with_its_work(serving: Any, works: Works) -> None:
    async with modern(serving, works.service) as client:
        task = await begun(client, "wait", name="a")
        for _ in range(2):  # one that has ended stays as it is
            assert (await client.call("tasks/cancel", {"taskId": task, **ABLE}))["result"]["resultType"] == "complete"
            assert (await status(client, task))["status"] == "cancelled"
        done = await ended(client, await begun(client, "add", a=1, b=2))
        await client.call("tasks/cancel", {"taskId": done["taskId"], **ABLE})
        assert (await status(client, done["taskId"]))["status"] == "completed"


@pytest.mark.parametrize(
    ("told", "text"),
    [
        ("half", "half"),
        (3, "3"),
        ([3, 4], "3 of 4"),
        ({"progress": 3, "total": 4}, "3 of 4"),
        ({"progress": 3, "message": "m" * 2000}, "m" * 1000),
    ],
)
async def test_progress_is_the_message_of_the_status(serving: Any, works: Works, told: Any, text: str) -> None:
    async with modern(serving, works.service) as client:
        task = await begun(client, "slowly", told=told)

        async def is_told() -> bool:
            return (await status(client, task)).get("statusMessage") == text

        await until(is_told)
        works.opened.set()
        assert (await ended(client, task))["status"] == "completed"


async def test_scopes_hold_for_tasks(serving: Any, works: Works) -> None:
    access = Access(Identity("ann", frozenset()))
    async with modern(serving, works.service, access=access) as client:
        assert "error" in await client.call("tools/call", {"name": "close", **ABLE})


async def asked(client: McpClient, task_id: str, *, count: int = 1) -> dict[str, str]:
    """The keys of the questions of a task that waits for so many answers, by their texts."""
    found: dict[str, dict[str, Any]] = {}

    async def asks() -> bool:
        told = await status(client, task_id)
        found.clear()
        found.update(told.get("inputRequests", {}))
        assert told["status"] == ("input_required" if found else "working"), told
        return len(found) == count

    await until(asks)
    return {str(each["params"].get("message")): key for key, each in found.items()}


async def update(client: McpClient, task_id: str, **responses: Any) -> dict[str, Any]:
    answer = await client.call("tasks/update", {"taskId": task_id, "inputResponses": responses, **ABLE})
    assert set(answer["result"]) == {"resultType", "_meta"}
    result: dict[str, Any] = answer["result"]
    return result


async def test_a_task_that_asks_waits_for_its_client(serving: Any, works: Works) -> None:
    async with modern(serving, works.service) as client:
        task = await begun(client, "book", room="12")
        first = await asked(client, task)
        await update(client, task, **{first["Name?"]: accepted("Ann")})
        second = await asked(client, task)
        assert second.keys() == {"12?"}
        assert first["Name?"] != second["12?"]
        await update(client, task, **{second["12?"]: {"action": "decline"}})
        last = await ended(client, task)
        assert last["result"]["structuredContent"] == {"name": "Ann", "sure": "decline", "client": "test"}
        await update(client, task, **{second["12?"]: accepted()})  # it has ended: nothing changes
        assert (await status(client, task))["lastUpdatedAt"] == last["lastUpdatedAt"]


async def test_answers_may_come_one_by_one_and_others_are_ignored(serving: Any, works: Works) -> None:
    async with modern(serving, works.service) as client:
        task = await begun(client, "both")
        keys = await asked(client, task, count=2)
        await update(client, task, unknown={"ignored": True}, **{keys["one"]: accepted()})
        assert await asked(client, task) == {"two": keys["two"]}
        await update(client, task, **{keys["one"]: {"action": "cancel"}})  # it was answered
        assert await asked(client, task) == {"two": keys["two"]}
        await update(client, task, **{keys["two"]: {"action": "decline"}})
        assert (await ended(client, task))["result"]["structuredContent"] == {"result": ["accept", "decline"]}


async def test_a_handler_in_a_thread_asks_too(serving: Any, works: Works) -> None:
    capabilities = {"roots": {}, "extensions": {EXTENSION: {}}}
    able = {"_meta": {"io.modelcontextprotocol/clientCapabilities": capabilities}}
    async with modern(serving, works.service) as client:
        task = (await client.tool("in_a_thread", **able))["taskId"]
        keys = await asked(client, task)
        await update(client, task, **{keys["None"]: {"roots": [{"uri": "file:///a"}]}})
        assert (await ended(client, task))["result"]["structuredContent"] == {"result": "file:///a"}


async def test_a_question_that_is_given_up_is_asked_no_more(serving: Any, works: Works) -> None:
    async with modern(serving, works.service) as client:
        task = await begun(client, "impatient")
        keys = await asked(client, task)
        assert await asked(client, task, count=0) == {}
        await update(client, task, **{keys["Quick?"]: accepted()})
        works.going.set()
        assert (await ended(client, task))["result"]["structuredContent"] == {"result": "late"}


@pytest.mark.parametrize("method", ["sampling/createMessage", "workspace/configuration"])
async def test_a_client_is_asked_only_what_it_takes(serving: Any, works: Works, method: str) -> None:
    async with modern(serving, works.service) as client:
        last = await ended(client, await begun(client, "unable", method=method))
        assert last["result"]["structuredContent"] == {"result": "-32601"}


async def test_a_task_asks_a_bounded_number_of_questions_at_a_time(serving: Any, works: Works) -> None:
    async with modern(serving, works.service) as client:
        task = await begun(client, "curious", count=MAX_OPEN)
        assert len(await asked(client, task, count=MAX_OPEN)) == MAX_OPEN
        last = await ended(client, await begun(client, "curious", count=MAX_OPEN + 1))
        assert last["result"]["isError"] is True


@pytest.mark.parametrize(("tool", "has_none"), [("unlimited", True), ("limited", False)])
async def test_only_the_deadline_of_the_operation_holds_for_a_task(
    serving: Any, works: Works, tool: str, has_none: bool
) -> None:
    async with modern(serving, works.service, request_timeout=30.0) as client:
        last = await ended(client, await begun(client, tool))
        assert last["result"]["structuredContent"] == {"result": has_none}


@pytest.mark.parametrize("responses", [None, [], {"a": 1}, {"a": json.loads("[" * 300 + "]" * 300)}])
async def test_answers_are_objects(serving: Any, works: Works, responses: Any) -> None:
    async with modern(serving, works.service) as client:
        task = await begun(client, "wait", name="a")
        error = (await client.call("tasks/update", {"taskId": task, "inputResponses": responses, **ABLE}))["error"]
        assert (error["code"], error["data"]["param"].partition(".")[0]) == (-32602, "inputResponses")


async def test_the_end_does_not_wait_for_an_answer_that_a_later_daemon_can_take(
    serving: Any, works: Works, tmp_path: Path
) -> None:
    settings = {"store": f"sqlite:{tmp_path / 'tasks'}", "drain_timeout": 100 * DEADLINE_SECONDS}
    async with modern(serving, works.service, **settings) as client:
        task = await begun(client, "book", room="12")
        keys = await asked(client, task)
        assert await client.wire.end() == 0
    async with modern(serving, works.service, **settings) as client:
        assert await asked(client, task) == keys


async def test_what_was_asked_and_answered_outlives_the_daemon(serving: Any, works: Works, tmp_path: Path) -> None:
    settings = {"store": f"sqlite:{tmp_path / 'tasks'}", "drain_timeout": 0.01}
    async with modern(serving, works.service, **settings) as client:
        task = await begun(client, "book", room="12")
        await update(client, task, **{(await asked(client, task))["Name?"]: accepted("Ann")})
        keys = await asked(client, task)
    async with modern(serving, works.service, **settings) as client:
        assert await asked(client, task) == keys  # the same question, and only that
        await update(client, task, **{keys["12?"]: accepted()})
        last = await ended(client, task)
    assert last["result"]["structuredContent"] == {"name": "Ann", "sure": "accept", "client": "test"}
    assert works.runs == ["12", "12"]


@pytest.mark.parametrize(("role", "others"), [("both", "both"), ("front", "worker")])
async def test_answers_reach_a_task_through_another_daemon(
    serving: Any, works: Works, tmp_path: Path, role: str, others: str
) -> None:
    store = f"sqlite:{tmp_path / 'tasks'}"
    async with (
        modern(serving, works.service, store=store, role=role) as client,
        modern(serving, Works().service, store=store, role=others) as other,
    ):
        task = await begun(client, "book", room="12")
        await update(other, task, **{(await asked(other, task))["Name?"]: accepted("Ann")})
        await update(client, task, **{(await asked(client, task))["12?"]: accepted()})
        last = await ended(other, task)
    assert last["result"]["structuredContent"] == {"name": "Ann", "sure": "accept", "client": "test"}


async def listening(client: McpClient, *task_ids: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The request that listens to tasks, and what of it was agreed on."""
    message = client.request("subscriptions/listen", {"notifications": {"taskIds": [*task_ids]}, **ABLE})
    await client.wire.send(message)
    agreed = await client.receive()
    assert agreed["method"] == "notifications/subscriptions/acknowledged"
    notifications: dict[str, Any] = agreed["params"]["notifications"]
    return message, notifications


async def told_of(client: McpClient, listening_id: Any) -> dict[str, Any]:
    """The next state of a task that the client is told of, without the id of what tells it."""
    note = await client.receive()
    assert note["method"] == "notifications/tasks"
    assert note["params"].pop("_meta") == {"io.modelcontextprotocol/subscriptionId": listening_id}
    params: dict[str, Any] = note["params"]
    return params


async def test_a_client_that_listens_is_told_each_state_of_its_tasks(serving: Any, works: Works) -> None:
    async with modern(serving, works.service) as client:
        task = await begun(client, "both")
        keys = await asked(client, task, count=2)
        done = await ended(client, await begun(client, "add", a=1, b=2))
        message, agreed = await listening(client, task, "no-such", done["taskId"], task)
        assert agreed == {"taskIds": [task, done["taskId"]]}
        first = [await told_of(client, message["id"]) for _ in range(2)]
        states = {each["taskId"]: each for each in first}
        assert states[done["taskId"]] == {name: done[name] for name in states[done["taskId"]]}
        assert states[done["taskId"]]["result"]["structuredContent"] == {"result": 3}
        assert states[task]["inputRequests"].keys() == set(keys.values())
        answers = {key: accepted() for key in keys.values()}
        params = {"taskId": task, "inputResponses": answers, **ABLE}
        await client.wire.send(client.request("tasks/update", params))
        came: list[dict[str, Any]] = []
        while not came or came[-1]["status"] != "completed":
            message_of = await client.receive()
            came += [message_of["params"]] if "method" in message_of else []
        assert {each["status"] for each in came[:-1]} <= {"working"}
        assert came[-1]["result"]["structuredContent"] == {"result": ["accept", "accept"]}


async def test_only_a_client_that_takes_tasks_listens_to_them(serving: Any, works: Works) -> None:
    async with modern(serving, works.service) as client:
        params = {"notifications": {"taskIds": ["a"]}, **UNABLE}
        error = (await client.call("subscriptions/listen", params))["error"]
        assert (error["code"], error["data"]) == (
            -32021,
            {"requiredCapabilities": {"extensions": {EXTENSION: {}}}},
        )
        many = {"notifications": {"taskIds": [str(number) for number in range(1025)]}, **ABLE}
        assert (await client.call("subscriptions/listen", many))["error"]["data"]["code"] == "OVERLOADED"
    async with modern(serving, Service("", version="1")) as client:
        assert (await listening(client, "a"))[1] == {}


async def test_tasks_that_wait_for_their_clients_keep_no_others_waiting(
    serving: Any, works: Works, tmp_path: Path
) -> None:
    store = f"sqlite:{tmp_path / 'tasks'}"
    async with (
        modern(serving, Works().service, store=store, role="front") as client,
        modern(serving, works.service, store=store, role="worker", max_runs=1),
    ):
        tasks = [await begun(client, "book", room=room) for room in ("1", "2", "3")]
        for task in tasks:
            assert await asked(client, task)
        task = await begun(client, "wait", name="a")
        await until(lambda: "a" in works.runs)
        works.going.set()
        assert (await ended(client, task))["status"] == "completed"


class Echo:
    """An executor that says again what it is told, and can't be cancelled."""

    async def execute(self, context: Any, events: Any) -> None:
        await events.complete("by the agent")


async def test_a_hosted_agent_and_the_tasks_of_tools_know_nothing_of_each_other(
    serving: Any, works: Works, tmp_path: Path
) -> None:
    agent = Agent(Echo(), name="Echo", description="Says it again.", input_modes=["application/json"])
    store = f"sqlite:{tmp_path / 'tasks'}"
    async with modern(serving, works.service, agent=agent, store=store) as client:
        task = (await ended(client, await begun(client, "add", a=1, b=2)))["taskId"]
    async with serving(works.service, agent=agent, store=store) as wire:
        assert (await said(wire, "GetTask", id=task))["error"]["code"] == -32001
        assert (await said(wire, "ListTasks"))["result"]["tasks"] == []
        message = {
            "messageId": "m",
            "role": "ROLE_USER",
            "parts": [{"data": {"skill": "add", "input": {"a": 1, "b": 2}}}],
        }
        params = {"message": message, "serviceParams": {"A2A-Extensions": "discreet:operation"}}
        sent = (await said(wire, "SendMessage", **params))["result"]["task"]
        assert sent["status"]["message"]["parts"][0]["text"] == "by the agent"


async def said(wire: Wire, method: str, **params: Any) -> dict[str, Any]:
    answer: dict[str, Any] = await wire.call(method, params)
    return answer


async def test_a_task_of_a_durable_store_is_told_by_the_next_daemon(serving: Any, works: Works, tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 'tasks'}"
    async with modern(serving, works.service, store=store) as client:
        task = (await ended(client, await begun(client, "add", a=1, b=2)))["taskId"]
    async with modern(serving, works.service, store=store) as client:
        assert (await status(client, task))["result"]["structuredContent"] == {"result": 3}
    async with modern(serving, Service("", version="1"), store=store) as client:
        assert (await client.call("tasks/get", {"taskId": task, **ABLE}))["error"]["code"] == -32601


def test_task_is_one_of_two_words() -> None:
    with pytest.raises(DeclarationError, match="task must be one of optional, required"):
        Service("").query(task="always")(lambda: None)  # type: ignore[typeddict-item]
