"""Basic/transports of 2025-11-25: Listening for Messages from the Server, Multiple Connections, Resumability and Redelivery."""

from __future__ import annotations

from contextlib import aclosing
from typing import Any

import anyio
import pytest

from support.asgi_client import AsgiClient, Reply
from support.mcp_http import McpHttp, begun, budget, events, first, messages
from support.waits import until

from ..conftest import Serve
from .conftest import SERVED, Works

pytestmark = pytest.mark.anyio

UPDATED = {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "work://one"}}


def steps(count: int, text: str = "") -> dict[str, Any]:
    return {"name": "work_steps", "arguments": {"count": count, "text": text}, "_meta": {"progressToken": "t"}}


async def primed(reply: Reply) -> str:
    """The id of the first event, which has no message."""
    async with aclosing(events(reply)) as coming:
        number, message = await anext(coming)
    assert message is None
    assert number is not None
    return number


async def subscribed(client: Any, revision: str = "2025-11-25") -> McpHttp:
    ours = await begun(client, revision)
    assert (await ours.post("resources/subscribe", {"uri": "work://one"})).result == {}
    return ours


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"accept": "application/json"}, 406),
        ({"mcp_session_id": None}, 400),
        ({"mcp_session_id": "guessed"}, 404),
        ({"mcp_protocol_version": "1999-01-01"}, 400),
        ({"last_event_id": "77-0"}, 400),
        ({"last_event_id": "0-0\u00e9"}, 400),
        ({"last_event_id": ""}, 400),
    ],
)
async def test_who_may_not_listen(client: AsgiClient, headers: dict[str, str | None], status: int) -> None:
    assert (await (await begun(client)).get(**headers)).status == status


@pytest.mark.parametrize("revision", ["2025-03-26", "2025-11-25"])
async def test_what_belongs_to_no_request_comes_on_the_stream_of_a_get(client: AsgiClient, revision: str) -> None:
    ours = await subscribed(client, revision)
    async with ours.listen(accept="text/event-stream") as reply:
        assert (await ours.call("work_touch")).headers["content-type"] == "application/json"
        assert [message for _, message in await first(reply)] == [UPDATED]


async def test_a_change_is_told_to_every_session_that_subscribed_and_to_each_on_one_stream(
    client: AsgiClient, works: Works
) -> None:
    works.going.set()
    one, other, third = await subscribed(client), await subscribed(client), await begun(client)
    await other.post("resources/unsubscribe", {"uri": "work://one"})
    await other.post("resources/subscribe", {"uri": "work://one"})
    async with one.open("tools/call", steps(1)) as told, one.listen() as ours, other.listen() as theirs:
        await third.call("work_touch")
        assert [message for _, message in await first(ours)] == [UPDATED]
        assert [message for _, message in await first(theirs)] == [UPDATED]
        assert UPDATED not in await messages(told)


async def test_what_came_before_somebody_listened_is_not_lost(client: AsgiClient) -> None:
    ours = await subscribed(client)
    await ours.call("work_touch")
    async with ours.listen() as reply:
        assert [message for _, message in await first(reply)] == [UPDATED]
    async with ours.listen() as reply:  # and it is not told twice
        await ours.call("work_touch")
        assert [number for number, _ in await first(reply)] == ["0-2"]


async def test_what_a_handler_leaves_behind_goes_there_and_what_it_asks_too(client: AsgiClient, works: Works) -> None:
    works.going.set()
    async with anyio.create_task_group() as tasks:
        ours = await begun(client, roots={})
        await ours.call("work_wait")
        [context] = works.contexts
        answers: list[Any] = []

        async def ask() -> None:
            await context.notify("notifications/later", {})
            answers.append(await context.request("roots/list"))

        async with ours.listen() as reply:
            tasks.start_soon(ask)
            (_, told), (_, asked) = await first(reply, 2)
            assert (told["method"], asked["method"]) == ("notifications/later", "roots/list")
            await ours.reply(asked["id"], {"roots": []})
            await until(lambda: answers == [{"roots": []}])


async def test_a_new_stream_takes_the_place_of_the_one_before(client: AsgiClient) -> None:
    ours = await subscribed(client)
    async with ours.listen() as older, ours.listen() as newer:
        assert await messages(older) == []
        await ours.call("work_touch")
        assert [message for _, message in await first(newer)] == [UPDATED]


async def test_a_stream_that_was_cut_off_goes_on_behind_the_last_event(ours: McpHttp, works: Works) -> None:
    async with ours.open("tools/call", steps(4)) as reply:
        [(last, message)] = await first(reply)
    assert message["params"]["progress"] == 0
    async with ours.listen(last_event_id=last) as rest:
        works.going.set()
        found = [each async for each in events(rest)][1:]
    assert [message.get("params", {}).get("progress") for _, message in found] == [1, 2, 3, None]
    assert found[-1][1]["id"] == 1
    for at, (number, _) in enumerate(found[:-1], 1):
        async with ours.listen(last_event_id=number) as rest:
            assert await messages(rest) == [message for _, message in found[at:]]
    assert (await ours.get(last_event_id=found[-1][0])).status == 204


async def test_a_stream_that_was_cut_off_gets_nothing_of_another_one(client: AsgiClient, works: Works) -> None:
    ours = await subscribed(client)
    async with (
        ours.open("tools/call", {"name": "work_wait"}, "slow") as slow,
        ours.open("tools/call", steps(3), "told") as told,
        ours.listen() as listening,
    ):
        ids = [await primed(each) for each in (slow, told, listening)]
        await ours.call("work_touch")
        works.going.set()
        await messages(slow)
        await messages(told)
    assert len({number.partition("-")[0] for number in ids}) == 3
    found = []
    for number in ids[:2]:
        async with ours.listen(last_event_id=number) as rest:
            found.append(await messages(rest))
    assert [each["id"] for each in found[0]] == ["slow"]
    assert [each.get("id", each.get("method")) for each in found[1]] == ["notifications/progress"] * 3 + ["told"]
    async with ours.listen(last_event_id=ids[2]) as rest:
        assert [message for _, message in await first(rest)] == [UPDATED]


async def test_the_events_of_another_session_are_out_of_reach(client: AsgiClient, works: Works) -> None:
    ours, others = await begun(client), await begun(client)
    async with others.open("tools/call", {"name": "work_wait"}) as reply:
        last = await primed(reply)
        assert (await ours.get(last_event_id=last)).status == 400
        works.going.set()
        await messages(reply)


async def test_a_cut_before_the_first_event_costs_the_stream_and_not_the_work(serve: Serve, works: Works) -> None:
    async with serve(works.service, http_mcp=True) as client:
        ours = await subscribed(client)
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ours.call, "work_wait")
                await works.began.wait()
                scope.cancel()
        works.going.set()
        await until(lambda: works.done == ["waited"])
        await ours.call("work_touch")
        async with ours.listen() as reply:  # where no answer belongs
            assert [message for _, message in await first(reply)] == [UPDATED]


async def test_a_reader_that_lost_some_gets_the_rest_and_the_log_says_so(
    serve: Serve, works: Works, capfd: pytest.CaptureFixture[str]
) -> None:
    works.going.set()
    async with serve(works.service, log_level="info", **SERVED) as client:
        ours = await begun(client)
        async with ours.open("tools/call", steps(1)) as reply:
            last = await primed(reply)
            await messages(reply)
        async with ours.open("tools/call", steps(14, "x" * 100_000)) as reply:
            whole = await primed(reply)
            await messages(reply)
        assert (await ours.get(last_event_id=last)).status == 400
        async with ours.listen(last_event_id=whole) as rest:
            found = await messages(rest)
    assert 9 <= len(found) <= 11
    assert found[-1]["id"] == 1
    assert "mcp.messages_lost" in capfd.readouterr().err


async def test_a_notification_that_nobody_awaits_does_not_fill_the_memory(serve: Serve, works: Works) -> None:
    """A client that listens and never reads: what is told goes to a bound, then it is dropped."""
    works.going.set()
    async with serve(works.service, http_mcp=True) as client:
        ours = await begun(client)
        await ours.call("work_wait")
        [context] = works.contexts
        async with ours.listen() as reply:
            reply.stalls = True
            for _ in range(200):
                context.notify("notifications/later", {"x": "x" * 100_000})
            assert budget(client).held("sessions") < 8 * 1024 * 1024
