"""The typed client for agents: the same over stdio and by HTTP."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any
from uuid import uuid4

import anyio
import anyio.abc
import msgspec
import pytest

from discreet.client import ConnectionFailed, InvalidReply, MethodNotFound, TaskNotCancelable, TaskNotFound, connect
from discreet.client.agent import (
    AgentClient,
    Message,
    Part,
    Role,
    SendConfiguration,
    Task,
    TaskArtifactUpdate,
    TaskState,
    TaskStatusUpdate,
    connect_agent,
    text_of,
)
from discreet.testing import in_memory
from support import obedient_agent
from support.card_keys import private_pem, public_pem
from support.cards import cards, whole_agent
from support.gateways import http_daemon
from support.http_server import HttpRequest, http_server
from support.programs import environment

pytestmark = pytest.mark.anyio

APPS = Path(obedient_agent.__file__).parent


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("agent")
    with http_daemon(APPS, "./obedient_agent.py:agent", f"--store=sqlite:{folder / 'tasks.db'}") as served:
        yield served


@pytest.fixture(params=["stdio", "http"])
async def agent(request: pytest.FixtureRequest, deadline: None) -> AsyncGenerator[AgentClient]:
    """A client of the agent, in memory and by HTTP."""
    if request.param == "http":
        async with connect_agent(request.getfixturevalue("url")) as found:
            yield found
    else:
        async with in_memory(obedient_agent.agent) as peer:
            yield AgentClient(peer)


async def sent(agent: AgentClient, *args: Any, **options: Any) -> Task:
    task = await agent.send(*args, **options)
    assert isinstance(task, Task)
    return task


# -- messages ----------------------------------------------------------------------------------------------------------


async def test_a_text_gets_a_task_with_its_artifact(agent: AgentClient) -> None:
    task = await sent(agent, "Ada")
    assert task.status.state is TaskState.COMPLETED
    assert task.status.message is not None and text_of(task.status.message) == "Done."
    assert [text_of(artifact) for artifact in task.artifacts] == ["Hello, Ada!"]
    assert task.history[0].role is Role.USER


@pytest.mark.parametrize(
    "content", [Part(text="Ada"), [Part(text="Ada")], Message("m-1", Role.USER, (Part(text="Ada"),))]
)
async def test_parts_and_messages_are_sent_as_they_are(agent: AgentClient, content: Any) -> None:
    task = await sent(agent, content, metadata={"a": 1})
    assert text_of(task.artifacts[0]) == "Hello, Ada!"
    if isinstance(content, Message):
        assert task.history[0].message_id == "m-1"


async def test_an_agent_may_reply_without_a_task(agent: AgentClient) -> None:
    reply = await agent.send("reply")
    assert isinstance(reply, Message) and text_of(reply) == "at once"
    (streamed,) = [event async for event in agent.stream("reply")]
    assert isinstance(streamed, Message) and streamed.parts == reply.parts


async def test_an_answer_goes_on_with_the_task_of_the_question(agent: AgentClient) -> None:
    asked = await sent(agent, "ask")
    assert asked.status.state is TaskState.INPUT_REQUIRED
    done = await sent(agent, "Ada", task_id=asked.id, context_id=asked.context_id)
    assert (done.id, done.status.state) == (asked.id, TaskState.COMPLETED)


async def test_a_stream_gives_the_task_and_its_updates_by_their_types(agent: AgentClient) -> None:
    task, working, greeting, done = [event async for event in agent.stream("Ada")]
    assert isinstance(task, Task) and task.status.state is TaskState.SUBMITTED
    assert isinstance(working, TaskStatusUpdate) and working.status.state is TaskState.WORKING
    assert isinstance(greeting, TaskArtifactUpdate) and text_of(greeting.artifact) == "Hello, Ada!"
    assert greeting.last_chunk and not greeting.append
    assert isinstance(done, TaskStatusUpdate) and done.task_id == task.id


@pytest.mark.parametrize("content", [5, [], ["Ada"], Part(), Part(text="a", url="b")])
async def test_what_can_be_no_message_is_refused(agent: AgentClient, content: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        await agent.send(content)


# -- tasks -------------------------------------------------------------------------------------------------------------


async def test_tasks_are_got_listed_and_watched_until_they_are_canceled(agent: AgentClient) -> None:
    waiting = await sent(agent, "wait", configuration=SendConfiguration(return_immediately=True))
    async with agent.subscribe(waiting.id) as events:
        first = await anext(events)
        assert isinstance(first, Task) and first.id == waiting.id
        canceled = await agent.cancel(waiting.id)
        *_, last = [event async for event in events]
    assert isinstance(last, TaskStatusUpdate)
    assert last.status.state is canceled.status.state is TaskState.CANCELED
    with pytest.raises(TaskNotCancelable):
        await agent.cancel(waiting.id)
    assert (await agent.get(waiting.id, history_length=0)).history == ()
    with pytest.raises(TaskNotFound):
        await agent.get("nobody's")


async def test_all_pages_of_a_list_are_one_iteration(agent: AgentClient) -> None:
    context = (await sent(agent, "0")).context_id
    for name in "1234":
        await sent(agent, name, context_id=context)
    listed = [task async for task in agent.list(context_id=context, page_size=2, include_artifacts=True)]
    assert [text_of(task.artifacts[0]) for task in listed] == [f"Hello, {name}!" for name in "43210"]
    waiting = [task async for task in agent.list(context_id=context, status=TaskState.INPUT_REQUIRED)]
    assert waiting == []


async def test_push_configs_are_made_got_listed_and_deleted(agent: AgentClient) -> None:
    task = await sent(agent, "ask")
    made = await agent.create_push_config(task.id, "https://93.184.215.14/hook", token="t")
    assert made.id is not None and made.url == "https://93.184.215.14/hook"
    assert await agent.get_push_config(task.id, made.id) == made
    assert await agent.list_push_configs(task.id) == (made,)
    await agent.delete_push_config(task.id, made.id)
    assert await agent.list_push_configs(task.id) == ()


# -- the card ----------------------------------------------------------------------------------------------------------


async def test_the_card_is_read_where_there_is_one(url: str) -> None:
    for place in (url, f"{url}.well-known/agent-card.json"):
        async with connect_agent(place) as agent:
            assert agent.card is not None and agent.card.name == "Obedient"
            assert isinstance(await agent.send("Ada"), Task)


def text(*command: str) -> str:
    arguments = [sys.executable, "-P", "-m", "discreet", *command]
    return subprocess.run(arguments, env=environment(), check=True, capture_output=True, text=True, cwd=APPS).stdout


async def test_a_card_that_no_trusted_key_has_signed_is_not_taken(tmp_path: Path, url: str, deadline: None) -> None:
    pytest.importorskip("rfc8785")
    key = tmp_path / "key.pem"
    key.write_text(private_pem("P-256") + private_pem("Ed25519"))
    flags = ("./obedient_agent.py:agent", "--card-key", str(key))
    trusted = text("card", *flags, "--public-keys")
    with http_daemon(APPS, *flags) as served:
        for keys in (trusted, public_pem("Ed25519")):
            async with connect_agent(served, card_keys=keys) as agent:
                assert agent.card is not None and len(agent.card.signatures) in (2, 4)
        with pytest.raises(InvalidReply, match="no signature of a trusted key"):
            async with connect_agent(served, card_keys=public_pem("RSA")):
                pass
    with pytest.raises(InvalidReply, match="no signature of a trusted key"):
        async with connect_agent(url, card_keys=trusted):
            pass
    with pytest.raises(ValueError, match="JWK Set"):
        async with connect_agent(url, card_keys="no keys"):
            pass


async def test_where_keys_are_trusted_an_agent_without_a_card_is_none() -> None:
    pytest.importorskip("rfc8785")

    async def none(request: HttpRequest) -> None:
        await request.answer(404, b"")

    async with http_server(none) as server:
        with pytest.raises(MethodNotFound):
            async with connect_agent(server.url, card_keys=public_pem("P-256")):
                pass


async def test_an_extended_card_must_be_signed_too() -> None:
    pytest.importorskip("rfc8785")
    from discreet.a2a.signing import CardKeys, read_signer

    signed = msgspec.json.encode(read_signer(private_pem("P-256")).sign(cards(agent=whole_agent()).public()))

    async def extended(request: HttpRequest) -> None:
        await request.result(msgspec.json.decode(signed))

    async with http_server(extended, extended) as server, connect(server.url) as peer:
        card = await AgentClient(peer, keys=CardKeys(public_pem("P-256"))).extended_card()
        assert card.name == "Whole"
        with pytest.raises(InvalidReply, match="no signature"):
            await AgentClient(peer, keys=CardKeys(public_pem("RSA"))).extended_card()


async def test_a_command_is_an_agent_without_a_public_card(deadline: None, anyio_backend: str) -> None:
    command = [sys.executable, "-P", "-m", "discreet", "serve", f"{obedient_agent.__file__}:agent", "--log-level=error"]
    async with connect_agent(command, env=environment()) as agent:
        assert agent.card is None
        assert isinstance(await agent.send("Ada"), Task)


def card(*interfaces: dict[str, str], **more: object) -> dict[str, object]:
    return {"name": "A", "description": "B", "version": "1", "supportedInterfaces": interfaces, **more}


async def pong(request: HttpRequest) -> None:
    await request.result({"task": {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"}}})


async def test_the_first_interface_that_is_spoken_is_called_with_its_tenant() -> None:
    async def show(request: HttpRequest) -> None:
        await request.json(
            card(
                {"url": f"{server.url}grpc", "protocolBinding": "GRPC", "protocolVersion": "1.0"},
                {"url": f"{server.url}old", "protocolBinding": "JSONRPC", "protocolVersion": "0.3"},
                {"url": f"{server.url}rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0", "tenant": "ann"},
            )
        )

    async with http_server(show, pong) as server, connect_agent(f"{server.url}mounted/") as agent:
        await agent.send("hi")
        asked, called = server.requests
        assert (asked.verb, asked.path, asked.headers["a2a-version"]) == (
            "GET",
            "/mounted/.well-known/agent-card.json",
            "1.0",
        )
        assert (called.path, called.message["params"]["tenant"]) == ("/rpc", "ann")


async def test_a_server_without_a_card_is_called_at_the_url() -> None:
    async def none(request: HttpRequest) -> None:
        await request.answer(404, b"")

    async with http_server(none, pong, none) as server:
        async with connect_agent(server.url) as agent:
            assert agent.card is None
            await agent.send("hi")
            assert server.requests[1].path == "/"
        with pytest.raises(MethodNotFound):
            async with connect_agent(f"{server.url}agent-card.json"):
                pass


async def test_an_agent_that_speaks_something_else_is_refused_with_what_it_speaks() -> None:
    async def show(request: HttpRequest) -> None:
        await request.json(card({"url": server.url, "protocolBinding": "GRPC", "protocolVersion": "1.0"}))

    async with http_server(show) as server:
        with pytest.raises(ConnectionFailed, match="GRPC 1.0") as caught:
            async with connect_agent(server.url):
                pass
        assert not caught.value.retryable


async def test_credentials_go_to_no_other_server_than_the_one_that_was_named() -> None:
    async def show(request: HttpRequest) -> None:
        await request.json(card({"url": other.url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}))

    async with http_server(pong) as other, http_server(show) as server:
        with pytest.raises(ConnectionFailed, match="another server"):
            async with connect_agent(server.url, service_params={"Authorization": "Bearer s3"}):
                pass
        assert other.requests == []
        async with connect_agent(server.url) as agent:
            await agent.send("hi")


@pytest.mark.parametrize("body", [b"<html>", b"[]", b"{}", b'{"name":"A"}'])
async def test_a_card_that_is_none_is_an_invalid_reply(body: bytes) -> None:
    async def show(request: HttpRequest) -> None:
        await request.answer(200, body)

    async with http_server(show) as server:
        with pytest.raises(InvalidReply):
            async with connect_agent(server.url):
                pass


@pytest.mark.parametrize(
    "result", [{}, {"statusUpdate": {"taskId": "t", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}}}, 5]
)
async def test_an_answer_that_holds_no_task_is_an_invalid_reply(result: object) -> None:
    async def none(request: HttpRequest) -> None:
        await request.answer(404, b"")

    async def answer(request: HttpRequest) -> None:
        await request.result(result)

    async with http_server(none, answer) as server, connect_agent(server.url) as agent:
        with pytest.raises(InvalidReply):
            await agent.send("hi")


# -- lost connections --------------------------------------------------------------------------------------------------


@asynccontextmanager
async def cutting(url: str, sizes: Iterator[int]) -> AsyncIterator[str]:
    """The URL of a proxy that cuts each connection after so many bytes of the answers."""
    port = int(url.rstrip("/").rpartition(":")[2])

    async def forward(client: anyio.abc.SocketStream) -> None:
        async with client, await anyio.connect_tcp("127.0.0.1", port) as server, anyio.create_task_group() as tasks:

            async def requests() -> None:
                with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                    async for data in client:
                        await server.send(data)

            tasks.start_soon(requests)
            left = next(sizes)
            with suppress(anyio.BrokenResourceError, anyio.EndOfStream):
                while left:
                    data = await server.receive(left)
                    await client.send(data)
                    left -= len(data)
            tasks.cancel_scope.cancel()

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, forward)
        yield f"http://127.0.0.1:{listener.extra(anyio.abc.SocketAttribute.local_port)}/"
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("seed", range(3))
async def test_however_often_the_connection_is_lost_every_event_comes_once(deadline: None, url: str, seed: int) -> None:
    random = Random(seed)
    sizes = iter(lambda: random.randrange(900, 4000), None)
    async with connect_agent(url) as agent, cutting(url, sizes) as proxy, connect(proxy) as peer:
        context = str(uuid4())
        async with AgentClient(peer).stream("count", context_id=context) as events:
            got = [event async for event in events]
        assert [text_of(each.artifact) for each in got if isinstance(each, TaskArtifactUpdate)] == [
            *map(str, range(30))
        ]
        assert len(got) == 32
        assert len([task async for task in agent.list(context_id=context)]) == 1


# -- beside it ---------------------------------------------------------------------------------------------------------


def test_the_client_for_agents_loads_the_model_of_a2a_and_nothing_else_of_the_daemon() -> None:
    program = "import discreet.client.agent, sys; print(*(m for m in sys.modules if m.startswith(('discreet.daemon', 'discreet.a2a', 'discreet.agents'))))"
    done = subprocess.run(
        [sys.executable, "-P", "-c", program], check=True, capture_output=True, text=True, env=environment()
    )
    shared = {"card", "types", "v10_model"}
    assert set(done.stdout.split()) == {
        "discreet.daemon",
        "discreet.a2a",
        *(f"discreet.a2a.{name}" for name in shared),
        "discreet.daemon.operations",
        "discreet.daemon.operations.identity",
    }
