"""Events as SSE: numbered, resumable, never one that waits for another client; and what waits for one is bounded and counted."""

from __future__ import annotations

import gc
from contextlib import aclosing
from pathlib import Path
from typing import Any

import anyio
import pytest

from discreet.agents.executor import RequestContext, TaskEvents
from discreet.daemon.memory import MemoryBudget
from discreet.errors.exceptions import FailureError
from discreet.gateway.calls import Exchange
from discreet.gateway.streams import MAX_UNDELIVERED, TURN_BYTES, Events, MessageStream
from support.asgi_client import AsgiClient, Reply
from support.waits import DEADLINE_SECONDS

from .conftest import Serve, agent_of
from .test_jsonrpc import V1, hello, hello_03

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Streams wait for events and end with their clients: on both event loops."""
    return str(request.param)


async def chunks(context: RequestContext, events: TaskEvents) -> None:
    await events.working()
    for word in context.text.split():
        await events.artifact(word, artifact_id="words", append=True)
    await events.complete()


async def test_a_stream_is_sse_that_no_proxy_holds_back(serve: Serve) -> None:
    async with serve(agent_of(chunks)) as client, client.stream("SendStreamingMessage", hello("a b"), **V1) as reply:
        assert reply.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert (reply.headers["cache-control"], reply.headers["x-accel-buffering"]) == ("no-cache, no-transform", "no")
        events = [(number, next(iter(event["result"]))) async for number, event in reply.events()]
    assert [kind for _, kind in events] == ["task", "statusUpdate", "artifactUpdate", "artifactUpdate", "statusUpdate"]
    numbers = [int(number) for number, _ in events if number is not None]
    assert numbers == sorted(set(numbers))
    assert len(numbers) >= 4


@pytest.mark.parametrize("store", ["memory", "sqlite"])
async def test_last_event_id_resumes_without_loss(serve: Serve, store: str, tmp_path: Path) -> None:
    going = anyio.Event()

    async def pause(context: RequestContext, events: TaskEvents) -> None:
        for word in "abcd":
            await events.artifact(word, artifact_id="words", append=True)
        await going.wait()
        await events.complete()

    settings = {} if store == "memory" else {"store": f"sqlite:{tmp_path / 'tasks.db'}"}
    async with serve(agent_of(pause), http_keep_alive=0.05, **settings) as client:
        async with client.stream("SendStreamingMessage", hello(), **V1) as reply:
            whole = await first(5, reply)
        task_id = whole[0][1]["task"]["id"]
        for number, _ in whole[1:]:
            async with client.stream("SubscribeToTask", {"id": task_id}, last_event_id=number, **V1) as reply:
                following = [each for each in whole[1:] if int(each[0]) > int(number)]
                assert await first(len(following), reply) == following
        async with client.stream("SubscribeToTask", {"id": task_id}, last_event_id=whole[-1][0], **V1) as reply:
            going.set()
            assert [next(iter(event["result"])) async for _, event in reply.events()] == ["statusUpdate"]


async def first(count: int, reply: Reply) -> list[Any]:
    """So many events of a stream that goes on."""
    async with aclosing(reply.events()) as events:
        return [(number, event["result"]) for number, event in [await anext(events) for _ in range(count)]]


async def test_a_stream_that_was_cut_before_the_end_is_resumed_without_loss(serve: Serve) -> None:
    async with serve(agent_of(chunks)) as client:
        async with client.stream("SendStreamingMessage", hello("a b"), **V1) as reply:
            whole = [(number, event["result"]) async for number, event in reply.events()]
        task_id = whole[0][1]["task"]["id"]
        for at, (number, _) in enumerate(whole[1:], 2):
            async with client.stream("SubscribeToTask", {"id": task_id}, last_event_id=number, **V1) as reply:
                assert [(number, event["result"]) async for number, event in reply.events()] == whole[at:]
        answer = await client.call("SubscribeToTask", {"id": task_id}, **V1)  # A2A 1.0, section 3.1.6
        assert answer["error"]["code"] == -32004


async def test_a_log_that_is_not_kept_is_an_error_and_never_a_silent_end(serve: Serve) -> None:
    async with serve(agent_of(chunks)) as client:
        task = (await client.call("SendMessage", hello("a b"), **V1))["result"]["task"]
        answer = await client.call("SubscribeToTask", {"id": task["id"]}, last_event_id="0", **V1)
        assert "EVENTS_LOST" in str(answer["error"])


async def test_a_message_is_not_sent_again_by_a_client_that_resumes(client: AsgiClient) -> None:
    answer = await client.call("SendStreamingMessage", hello(), last_event_id="3", **V1)
    assert answer["error"]["code"] == -32004
    assert "SubscribeToTask" in answer["error"]["data"][0]["metadata"]["suggestion"]


@pytest.mark.parametrize("number", ["x", "-1", "1.5", "9" * 40, "99"])
async def test_a_last_event_id_that_is_no_number_of_an_event_is_named(client: AsgiClient, number: str) -> None:
    task = (await client.call("SendMessage", hello(), **V1))["result"]["task"]
    answer = await client.call("SubscribeToTask", {"id": task["id"]}, last_event_id=number, **V1)
    assert answer["error"]["code"] == -32602
    assert "Last-Event-ID" in str(answer["error"]["data"])


async def test_an_error_before_the_first_event_is_told_as_clients_of_each_version_expect(client: AsgiClient) -> None:
    async with client.stream("SubscribeToTask", {"id": "no"}, **V1) as reply:
        assert reply.headers["content-type"] == "application/json"
        assert (await reply.json())["error"]["code"] == -32001
    async with client.stream("tasks/resubscribe", {"id": "no"}) as reply:
        assert reply.headers["content-type"].startswith("text/event-stream")
        assert [event["error"]["code"] async for _, event in reply.events()] == [-32001]
    async with client.stream("message/stream", hello_03()) as reply:
        assert [event["result"]["kind"] async for _, event in reply.events()][-1] == "status-update"


async def test_one_subscriber_that_reads_nothing_holds_up_no_other(serve: Serve) -> None:
    going = anyio.Event()

    async def many(context: RequestContext, events: TaskEvents) -> None:
        await events.working()
        await going.wait()
        for number in range(100):
            await events.artifact(str(number), artifact_id="a", append=True)
        await events.complete()

    ended: list[list[Any]] = []

    async with serve(agent_of(many)) as client:
        params: dict[str, Any] = {**hello(), "configuration": {"returnImmediately": True}}
        task = (await client.call("SendMessage", params, **V1))["result"]["task"]["id"]

        async def read(*, task_status: anyio.abc.TaskStatus[None]) -> None:
            async with client.stream("SubscribeToTask", {"id": task}, **V1) as reply:
                found = []
                async for _, event in reply.events():
                    if not found:
                        task_status.started()
                    found.append(next(iter(event["result"])))
                ended.append(found)

        async with client.stream("SubscribeToTask", {"id": task}, **V1) as reading_nothing:
            reading_nothing.stalls = True
            async with anyio.create_task_group() as tasks:
                for _ in range(10):
                    await tasks.start(read)
                going.set()
    assert ended == [["task", *["artifactUpdate"] * 100, "statusUpdate"]] * 10


# -- what waits for one client --


MIB = 1024 * 1024


def queue(limit: int = 64 * MIB) -> tuple[Events, MessageStream, MemoryBudget]:
    memory = MemoryBudget(limit)
    stream = MessageStream(memory, kind="events")
    return Events(stream, memory, lambda _, value, number: b"%d:%b" % (number or 0, value)), stream, memory


async def test_no_more_is_taken_than_goes_out_at_once_and_nothing_is_lost() -> None:
    events, stream, memory = queue()
    values = [b"x" * (TURN_BYTES // 3) for _ in range(10)]
    for number, value in enumerate(values):
        events.put(value, number)
    stream.end()
    token, taken = stream.begin_response(), []
    while batch := await stream.take(token, DEADLINE_SECONDS):
        assert sum(each.size for each in batch) < TURN_BYTES + len(values[0])
        stream.taken(batch)
        taken += batch
    assert [each.text for each in taken] == [b"%d:%b" % each for each in enumerate(values)]
    assert memory.used == 0


async def test_a_client_that_goes_frees_what_waited_and_its_producer() -> None:
    events, stream, memory = queue()
    for _ in range(MAX_UNDELIVERED):
        events.put(b"x" * 1000)
    stream.close()
    with anyio.fail_after(DEADLINE_SECONDS):
        await events.wait_for_room()
    events.put(b"late")
    assert (memory.used, stream.text()) == (0, [])


def test_an_event_that_does_not_fit_is_refused() -> None:
    events, _, memory = queue(limit=MIB)
    with pytest.raises(FailureError):
        events.put(b"x" * 2 * MIB)
    assert memory.used == 0


@pytest.mark.parametrize("method", ["SendMessage", "SendStreamingMessage", "GetTask"])
async def test_an_answered_request_is_freed_without_the_collector(client: AsgiClient, method: str) -> None:
    params = {"id": "none"} if method == "GetTask" else hello()
    gc.collect()
    gc.disable()
    try:
        async with client.stream(method, params, **V1) as reply:
            assert reply.status == 200
            await reply.body()
        assert [each for each in gc.get_objects() if isinstance(each, Exchange)] == []
    finally:
        gc.enable()
