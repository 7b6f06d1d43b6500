"""What the page is told of the tasks of all callers, and who is told it."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from typing import Any

import anyio
import pytest

from discreet.agents.executor import RequestContext, TaskEvents
from support.asgi_client import AsgiClient
from support.vault import SECRET, digest
from support.waits import until

from ..conftest import Serve, agent_of
from ..test_jsonrpc import V1

pytestmark = pytest.mark.anyio

OPERATOR_SECRET = "tok-of-an-operator"
ADA, OPERATOR = {"authorization": f"Bearer {SECRET}"}, {"authorization": f"Bearer {OPERATOR_SECRET}"}
TOKENS = [f"ada:{digest(SECRET)}:books", f"op:{digest(OPERATOR_SECRET)}:tasks:operate"]
NUMBERS = count()
TOKEN = "ghp_0123456789abcdefghijABCDEFGHIJ012345"


async def work(context: RequestContext, events: TaskEvents) -> None:
    await events.working(f"It is {TOKEN}.")
    if context.text == "fail":
        await events.fail("Out of flour.")
    elif context.text == "wait":
        await anyio.sleep_forever()
    else:
        await events.complete()


async def no_work(context: RequestContext, events: TaskEvents) -> None:
    pass


async def sent(client: AsgiClient, text: str, caller: dict[str, str]) -> str:
    message = {"messageId": f"m{next(NUMBERS)}", "role": "ROLE_USER", "parts": [{"text": text}]}
    params = {"message": message, "configuration": {"returnImmediately": True}}
    answer = await client.call("SendMessage", params, **V1, **caller)
    return str(answer["result"]["task"]["id"])


async def told(client: AsgiClient, path: str, caller: dict[str, str] = OPERATOR, method: str = "GET") -> Any:
    status, _, body = await client.request(method, f"/page/{path}", headers=caller)
    return json.loads(body) if status == 200 else status


async def until_state(client: AsgiClient, task_id: str, state: str, caller: dict[str, str] = OPERATOR) -> None:
    async def has_it() -> bool:
        return bool((await told(client, f"task?id={task_id}", caller))["task"]["state"] == state)

    await until(has_it)


@pytest.mark.parametrize("store", ["memory", "sqlite"])
async def test_an_operator_sees_the_tasks_of_all_callers_cancels_them_and_tries_them_again(
    serve: Serve, store: str, tmp_path: Path
) -> None:
    setting = "memory" if store == "memory" else f"sqlite:{tmp_path}/tasks.db"
    async with serve(agent_of(work, no_work), http_page=True, tokens=TOKENS, store=setting) as client:
        failed, waits = await sent(client, "fail", ADA), await sent(client, "wait", ADA)
        await until_state(client, failed, "failed")
        await until_state(client, waits, "working")
        listed = await told(client, "tasks")
        assert {(each["id"], each["caller"]) for each in listed["tasks"]} == {(failed, "ada"), (waits, "ada")}
        assert (listed["total"], listed["next"]) == (2, "")
        for query, found in (("state=failed", [failed]), ("older=3600", []), ("caller=bob", []), ("operation=x", [])):
            assert [each["id"] for each in (await told(client, f"tasks?{query}"))["tasks"]] == found
        shown = await told(client, f"task?id={failed}")
        assert (shown["log"], shown["missing"]) == (f"task={failed}", 0 if store == "sqlite" else shown["missing"])
        assert TOKEN not in str(shown)
        assert shown["events"][0]["text"] == "fail"
        again = await told(client, f"task/retry?id={failed}", method="POST")
        assert (again["caller"], again["id"] != failed) == ("ada", True)
        await until_state(client, again["id"], "failed")
        done = await told(client, f"task/cancel?id={waits}", method="POST")
        assert done["state"] == "canceled"


async def test_a_caller_without_the_scope_sees_and_does_nothing_of_it(serve: Serve) -> None:
    async with serve(agent_of(work, no_work), http_page=True, tokens=TOKENS) as client:
        mine = await sent(client, "fail", ADA)
        assert await told(client, "operator", ADA) == {"operates": False}
        assert await told(client, "operator") == {"operates": True}
        for path, method in (
            ("tasks", "GET"),
            (f"task?id={mine}", "GET"),
            (f"task/cancel?id={mine}", "POST"),
            (f"task/retry?id={mine}", "POST"),
        ):
            assert await told(client, path, ADA, method) == 403
            assert await told(client, path, {}, method) == 401


async def test_where_callers_are_not_known_this_machine_operates_unless_others_may_call_too(serve: Serve) -> None:
    async with serve(agent_of(work, no_work), http_page=True) as client:
        assert await told(client, "operator", {}) == {"operates": True}
        failed = await sent(client, "fail", {})
        again = await told(client, f"task/retry?id={failed}", {}, "POST")
        await until_state(client, again["id"], "failed", {})
    async with serve(agent_of(work), http_page=True, http_open=True) as client:
        assert await told(client, "operator", {}) == {"operates": False}
        assert await told(client, "tasks", {}) == 403


async def test_what_can_not_be_done_is_a_failure_with_a_code(serve: Serve) -> None:
    async with serve(agent_of(work, no_work), http_page=True, tokens=TOKENS) as client:
        done = await sent(client, "ready", ADA)
        await until_state(client, done, "completed")
        for method, path, code in (
            ("GET", "task?id=nothing", "TASK_NOT_FOUND"),
            ("POST", "task/cancel?id=nothing", "TASK_NOT_FOUND"),
            ("POST", f"task/cancel?id={done}", "TASK_NOT_CANCELABLE"),
            ("POST", f"task/retry?id={done}", "UNSUPPORTED_OPERATION"),
            ("GET", "tasks?state=sleeping", "INVALID_INPUT"),
            ("GET", "tasks?older=x", "INVALID_INPUT"),
            ("GET", "tasks?page=x", "INVALID_INPUT"),
            ("GET", "task/cancel?id=x", "INVALID_OPERATION_TYPE"),
        ):
            _, _, body = await client.request(method, f"/page/{path}", headers=OPERATOR)
            assert json.loads(body)["code"] == code, path


async def test_a_list_has_pages_of_fifty(serve: Serve) -> None:
    async with serve(agent_of(work), http_page=True, tokens=TOKENS) as client:
        for _ in range(60):
            await sent(client, "ready", ADA)
        first = await told(client, "tasks")
        second = await told(client, f"tasks?page={first['next']}")
        assert (len(first["tasks"]), len(second["tasks"]), second["next"]) == (50, 10, "")
        assert len({each["id"] for each in [*first["tasks"], *second["tasks"]]}) == 60
