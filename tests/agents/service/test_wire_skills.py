"""The agent of a daemon without an `Agent`: operations as tasks, with their contract as operations."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio
import msgspec
import pytest

from discreet import Context, OperationError, Service
from discreet.a2a.types import new_id
from discreet.client import RemoteError
from discreet.testing import in_memory
from support.waits import DEADLINE_SECONDS
from support.works import code_of

pytestmark = pytest.mark.anyio


class Declined(OperationError, code="DECLINED", http_status=409):
    """Not now"""


DECODED: list[str] = []


class Item(msgspec.Struct):
    """Tells of every time that one is made."""

    name: str

    def __post_init__(self) -> None:
        DECODED.append(self.name)


def service() -> Service:
    desk = Service("desk")

    @desk.query(scopes=["desk:read"])
    async def add(a: int, b: int) -> int:
        return a + b

    @desk.mutation(errors=[Declined])
    async def decline(how: str) -> str:
        raise Declined() if how == "declared" else RuntimeError("a secret")

    @desk.subscription()
    async def count(to: int) -> AsyncIterator[int]:
        for number in range(to):
            yield number

    @desk.query(timeout=0.05)
    async def stay(ctx: Context) -> int:
        await anyio.sleep_forever()
        return 0

    return desk


def skill(name: object, **params: Any) -> dict[str, Any]:
    part = {"data": {"skill": name, "input": params}}
    return {"message": {"messageId": new_id(), "role": "ROLE_USER", "parts": [{"text": "please"}, part]}}


async def test_cancelling_the_task_of_a_skill_cancels_the_operation() -> None:
    began, ended = anyio.Event(), anyio.Event()
    desk = Service("desk")

    @desk.mutation(timeout=None)
    async def stay(ctx: Context) -> int:
        began.set()
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()
        return 0

    async with in_memory(desk) as peer, anyio.create_task_group() as calls:
        calls.start_soon(peer.call, "SendMessage", skill("desk/stay"))
        await began.wait()
        (task,) = (await peer.call("ListTasks", {}))["tasks"]
        canceled = await peer.call("CancelTask", {"id": task["id"]})
        assert canceled["status"]["state"] == "TASK_STATE_CANCELED"
        with anyio.fail_after(DEADLINE_SECONDS):
            await ended.wait()


async def test_skills_run_as_tasks_with_the_contract_of_their_operation() -> None:
    async with in_memory(service()) as peer:
        task = (await peer.call("SendMessage", skill("desk/add", a=1, b=2)))["task"]
        assert task["status"]["state"] == "TASK_STATE_COMPLETED"
        assert task["artifacts"][0]["parts"] == [{"data": 3, "mediaType": "application/json"}]
        streamed = [
            each
            async for each in peer.subscribe(
                "SendStreamingMessage", skill("desk/count", to=4), timeout=DEADLINE_SECONDS
            )
        ]
        chunks = [each["artifactUpdate"] for each in streamed if "artifactUpdate" in each]
        assert [chunk["artifact"]["parts"][0]["data"] for chunk in chunks] == [0, 1, 2, 3]
        assert [chunk.get("append", False) for chunk in chunks] == [False, True, True, True]
        task = (await peer.call("SendMessage", skill("desk/decline", how="declared")))["task"]
        assert task["status"]["state"] == "TASK_STATE_FAILED"
        text, error = task["status"]["message"]["parts"]
        assert (text["text"], error["data"]["data"]) == ("Not now", {"code": "DECLINED", "retryable": False})
        task = (await peer.call("SendMessage", skill("desk/decline", how="by surprise")))["task"]
        assert task["status"]["message"]["parts"][0]["text"] == "Internal error"
        assert b"secret" not in msgspec.json.encode(task)
        task = (await peer.call("SendMessage", skill("desk/stay")))["task"]
        assert task["status"]["message"]["parts"][0]["text"] == "Request timed out"
        before = (await peer.call("ListTasks", {}))["totalSize"]
        assert await code_of(peer.call("SendMessage", skill("desk/none"))) == -32000
        assert await code_of(peer.call("SendMessage", skill(7))) == -32602
        with pytest.raises(RemoteError) as caught:
            await peer.call("SendMessage", skill("desk/add", a="x", b=2))
        assert caught.value.failure.param == "message.parts[1].data.input.a"
        assert (await peer.call("ListTasks", {}))["totalSize"] == before
    async with in_memory(service(), scopes=["other"]) as peer:
        assert await code_of(peer.call("SendMessage", skill("desk/add", a=1, b=2))) == -32000


async def test_the_input_of_a_skill_is_decoded_once_also_where_its_calls_are_keyed_by_it() -> None:
    DECODED.clear()
    desk = Service("desk")

    @desk.mutation(keyed="key")
    async def keyed(item: Item, key: str) -> str:
        return item.name

    @desk.query(inline=True)
    def plain(item: Item) -> str:
        return item.name

    @desk.subscription()
    async def stream(item: Item) -> AsyncIterator[str]:
        yield item.name

    async with in_memory(desk) as peer:
        for name, more in (("keyed", {"key": "k"}), ("plain", {}), ("stream", {})):
            result = await peer.call("SendMessage", skill(f"desk/{name}", item={"name": name}, **more))
            assert result["task"]["artifacts"][0]["parts"][0]["data"] == name
    assert DECODED == ["keyed", "plain", "stream"]
