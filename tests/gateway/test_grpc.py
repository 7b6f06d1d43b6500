"""A2A by gRPC: what calls get, one status each; whose calls they are; limits; the end; bytes that are no calls.

The whole session of another client is in tests/interop.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import AsyncGenerator
from importlib import import_module
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

pytest.importorskip("grpc")

import grpc

from discreet import Service
from discreet.a2a.card import HttpAuth, requires
from discreet.a2a.methods import V10_METHODS
from discreet.a2a.types import Part
from discreet.agents import Agent
from discreet.daemon.apps import AppError
from discreet.daemon.operations.identity import Identity
from discreet.errors.codes import A2A_REASONS, ERROR_TABLE
from discreet.errors.failures import DomainFailure
from discreet.gateway.grpc import messages
from discreet.gateway.grpc.messages import METHODS, SERVICE, status_of
from support.certificates import Authority
from support.executors import Scripted
from support.grpc_client import V1, GrpcClient, grpc_daemon, said
from support.in_process import in_process
from support.waits import until

pytestmark = pytest.mark.anyio


async def echo(context: Any, events: Any) -> None:
    await events.complete(context.text)


def agent_of(execute: Any = echo, **options: Any) -> Agent:
    """An agent whose work is this function."""
    return Agent(Scripted(execute), name="Echo", description="Says it again.", input_modes=["*/*"], **options)


@pytest.fixture
async def client() -> AsyncGenerator[GrpcClient]:
    """Of a daemon with the echo agent alone."""
    async with grpc_daemon(agent_of()) as found:
        yield found


def details_of(failed: grpc.aio.AioRpcError) -> list[Any]:
    """The messages in the details of a status, and before them its own."""
    status = messages._STATUS.FromString(failed.trailing_metadata()["grpc-status-details-bin"])
    assert (status.code, status.message) == (failed.code().value[0], failed.details())
    found = []
    for each in status.details:
        name = each.type_url.rpartition("/")[2]
        found.append(messages._class_of(messages._POOL.FindMessageTypeByName(name)).FromString(each.value))
    return found


async def rest_of(call: Any) -> list[Any]:
    """The messages of a stream that are still to come."""
    found = []
    while (message := await call.read()) is not grpc.aio.EOF:
        found.append(message)
    return found


# -- calls and their statuses --


def test_the_service_has_the_methods_of_1_0() -> None:
    assert {path.rpartition("/")[2] for path in METHODS} == set(V10_METHODS)


async def test_a_call_answers_with_a_message(client: GrpcClient) -> None:
    task = (await client.send("hello")).task
    assert task.status.message.parts[0].text == "hello"
    assert (await client.call("GetTask", id=task.id)).id == task.id
    assert [each.id for each in (await client.call("ListTasks")).tasks] == [task.id]


async def test_numbers_bytes_and_trees_pass_unchanged(client: GrpcClient) -> None:
    parts = [{"raw": b"\x00\xff"}, {"data": {"struct_value": {"a": [1, 2.5, None, True], "b": {"c": "d"}}}}]
    message = {"message_id": "m", "role": "ROLE_USER", "parts": [{"text": "t"}, *parts]}
    sent = (await client.call("SendMessage", message=message)).task.history[0]
    assert sent.parts[1].raw == b"\x00\xff"
    assert sent.parts[2].data == METHODS[f"/{SERVICE}/SendMessage"].request(message=message).message.parts[2].data


async def test_an_operation_is_called_with_whole_numbers() -> None:
    shop = Service("shop")

    @shop.query()
    def price(count: int) -> int:
        """Return a price."""
        return count * 40

    async with grpc_daemon(shop) as client:
        data = {"struct_value": {"skill": "shop/price", "input": {"count": 2}}}
        message = {"message_id": "m", "role": "ROLE_USER", "parts": [{"data": data}]}
        task = (await client.call("SendMessage", message=message)).task
        assert task.artifacts[0].parts[0].data.number_value == 80


@pytest.mark.parametrize(
    "row", [row for row in ERROR_TABLE if row.failure in A2A_REASONS], ids=lambda row: row.failure.__name__
)
def test_each_failure_of_a2a_has_the_status_and_the_reason_of_the_table(row: Any) -> None:
    arguments = {"InvalidParams": ("a", "string", "integer"), "ParseFailure": ("invalid-json",)}
    arguments["InvalidRequest"] = ("malformed-envelope",)
    told = status_of(row.failure(*arguments.get(row.failure.__name__, ())))
    status = messages._STATUS.FromString(told.details)
    assert told.name == row.grpc_status
    assert grpc.StatusCode[told.name].value[0] == status.code
    assert A2A_REASONS[row.failure].encode() in status.details[0].value
    assert b"a2a-protocol.org" in status.details[0].value


async def test_failures_carry_the_details_of_google_rpc(client: GrpcClient) -> None:
    failed = await client.failure("GetTask", id="none")
    (info,) = details_of(failed)
    assert failed.code() is grpc.StatusCode.NOT_FOUND
    assert (info.reason, info.domain) == ("TASK_NOT_FOUND", "a2a-protocol.org")
    failed = await client.failure("ListTasks", page_size=101)
    info, bad = details_of(failed)
    assert (failed.code(), info.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_PARAMS")
    assert bad.field_violations[0].field == "pageSize"


async def test_a_version_is_asked_for(client: GrpcClient) -> None:
    for headers in ((), (("a2a-version", "0.3"),), (("a2a-version", "9.9"),)):
        failed = await client.failure("GetTask", id="none", headers=headers)
        assert failed.code() is grpc.StatusCode.FAILED_PRECONDITION
        assert details_of(failed)[0].reason == "VERSION_NOT_SUPPORTED"


@pytest.mark.parametrize("path", ["/x/y", f"/{SERVICE}/Nothing", "/a2a.v1.A2AService/SendMessage", "/"])
async def test_an_unknown_method_is_unimplemented(client: GrpcClient, path: str) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await client.channel.unary_unary(path)(b"")
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
    assert details_of(caught.value)[0].reason == "METHOD_NOT_FOUND"


def nested(levels: int) -> Any:
    data: Any = "leaf"
    for _ in range(levels):
        data = {"a": data}
    return data


@pytest.mark.parametrize("fact", [nested(60), 10**400])
def test_details_that_no_message_can_hold_are_left_out_of_a_status(fact: Any) -> None:
    status = status_of(DomainFailure("TAKEN", "It is taken.", details={"fact": fact}))
    assert (status.message, len(status.details) < messages.MAX_STATUS_BYTES) == ("It is taken.", True)


@pytest.mark.parametrize("data", [nested(100), {"n": 10**400}])
async def test_what_no_message_can_hold_is_refused_and_told(data: Any) -> None:

    async def deep(context: Any, events: Any) -> None:
        await events.artifact(Part(data=data))
        await events.complete("done")

    async with grpc_daemon(agent_of(deep)) as client:
        failed = await client.failure("SendMessage", **said("deep"))
        assert failed.code() is grpc.StatusCode.FAILED_PRECONDITION
        assert "JSON-RPC" in details_of(failed)[0].metadata["suggestion"]
        events = client.begin("SendStreamingMessage", **said("deeper"))
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await rest_of(events)
        assert caught.value.code() is grpc.StatusCode.FAILED_PRECONDITION
        await until(lambda: client.listener.settled)


def test_details_that_clients_would_refuse_are_left_out() -> None:
    details = msgspec.Raw(msgspec.json.encode({"text": "x" * 20_000}))
    told = status_of(DomainFailure("LONG", "It is long", False, details))
    status = messages._STATUS.FromString(told.details)
    assert len(told.details) < messages.MAX_STATUS_BYTES
    assert [each.type_url.rpartition(".")[2] for each in status.details] == ["ErrorInfo"]


# -- streams --


async def test_events_come_as_they_happen_and_a_task_can_be_subscribed_to() -> None:
    going = anyio.Event()

    async def work(context: Any, events: Any) -> None:
        await events.artifact("first", artifact_id="a")
        await going.wait()
        await events.complete("done")

    async with grpc_daemon(agent_of(work)) as client:
        events = client.begin("SendStreamingMessage", **said("go"))
        task = (await events.read()).task
        assert (await events.read()).artifact_update.artifact.parts[0].text == "first"
        other = client.begin("SubscribeToTask", id=task.id)
        assert (await other.read()).task.id == task.id
        going.set()
        for stream in (events, other):
            assert (await stream.read()).status_update.status.message.parts[0].text == "done"
            assert await stream.read() is grpc.aio.EOF
            assert await stream.code() is grpc.StatusCode.OK


@pytest.mark.parametrize("way", ["cancelled", "deadline", "connection"])
async def test_a_client_that_leaves_ends_its_call_and_not_the_task(way: str) -> None:
    async def work(context: Any, events: Any) -> None:
        await events.working()
        await anyio.sleep_forever()

    async with grpc_daemon(agent_of(work)) as client:
        channel = client.open()
        events = client.begin("SendStreamingMessage", channel=channel, **said("go"))
        task = (await events.read()).task
        assert not client.listener.settled
        match way:
            case "cancelled":
                events.cancel()
            case "deadline":
                failed = await client.failure("SendMessage", timeout=0.1, **said("wait"))
                assert failed.code() is grpc.StatusCode.DEADLINE_EXCEEDED
                events.cancel()
            case _:
                await channel.close()
        await until(lambda: client.listener.settled)
        assert (await client.call("GetTask", id=task.id)).status.state == 2  # working
        await channel.close()


async def test_a_client_that_does_not_read_holds_up_its_own_events_alone() -> None:
    count = 200

    async def work(context: Any, events: Any) -> None:
        for _ in range(count):
            await events.artifact("x" * 20_000, artifact_id="a", append=True)
        await events.complete("done")

    async with grpc_daemon(agent_of(work)) as client:
        idle = client.begin("SendStreamingMessage", **said("idle"))
        await idle.read()
        other = client.begin("SendStreamingMessage", **said("other"))
        assert len(await rest_of(other)) == count + 2
        assert client.host.memory.held("events") < 64 * 20_000  # of some 4 MB that wait for the other one
        assert len(await rest_of(idle)) == count + 1


# -- whose calls they are --


class Known:
    """Knows ann, who may do all, and bob, who may do nothing."""

    schemes = ("Bearer",)
    realm = "test"

    def resolve(self, authorization: str) -> Identity | None:
        name = authorization.removeprefix("Bearer ")
        return Identity(name, frozenset({"work"} if name == "ann" else ())) if name in ("ann", "bob") else None


def by(name: str) -> tuple[tuple[str, str], ...]:
    return (*V1, ("authorization", f"Bearer {name}"))


async def test_callers_are_known_by_their_authorization_and_see_their_own_tasks() -> None:
    async def who(context: Any, events: Any) -> None:
        await events.complete(context.identity.subject)

    async with grpc_daemon(agent_of(who), provider=Known()) as client:
        task = (await client.send("who", headers=by("ann"))).task
        assert task.status.message.parts[0].text == "ann"
        assert (await client.call("GetTask", id=task.id, headers=by("ann"))).id == task.id
        assert (await client.failure("GetTask", id=task.id, headers=by("bob"))).code() is grpc.StatusCode.NOT_FOUND
        for headers in (V1, by("eve")):
            failed = await client.failure("GetTask", id=task.id, headers=headers)
            assert failed.code() is grpc.StatusCode.UNAUTHENTICATED
            info = details_of(failed)[0]
            assert (info.reason, info.domain, info.metadata["authSchemes"]) == ("FORBIDDEN", "discreet", "Bearer")


@pytest.mark.parametrize("twice", [("authorization", "Bearer eve"), ("a2a-version", "0.3")])
async def test_metadata_of_which_only_one_value_makes_sense_is_refused_where_there_are_two(
    twice: tuple[str, str],
) -> None:
    async with grpc_daemon(agent_of(), provider=Known()) as client:
        for headers in ((*by("ann"), twice), (twice, *by("ann"))):
            failed = await client.failure("ListTasks", headers=headers)
            assert failed.code() is grpc.StatusCode.INVALID_ARGUMENT
            assert twice[0] in str(details_of(failed))


async def test_scopes_are_asked_for() -> None:
    agent = agent_of(security_schemes={"bearer": HttpAuth("bearer")}, security=[requires({"bearer": ["work"]})])
    async with grpc_daemon(agent, provider=Known()) as client:
        assert (await client.send("hello", headers=by("ann"))).task.id
        failed = await client.failure("SendMessage", headers=by("bob"), **said("hello"))
        assert failed.code() is grpc.StatusCode.PERMISSION_DENIED


async def test_nothing_is_read_of_callers_that_may_not_call() -> None:
    async with grpc_daemon(agent_of(), provider=Known()) as client:
        call = client.channel.stream_stream(f"/{SERVICE}/SendMessage")(metadata=V1)
        assert await call.code() is grpc.StatusCode.UNAUTHENTICATED  # though it has sent no message


async def test_the_extended_card_names_where_grpc_is_served() -> None:
    async with grpc_daemon(agent_of(extended=lambda card, identity: card), provider=Known()) as client:
        card = await client.call("GetExtendedAgentCard", headers=by("ann"))
        (interface,) = card.supported_interfaces
        assert (interface.protocol_binding, interface.protocol_version) == ("GRPC", "1.0")
        assert interface.url == client.address


# -- limits --


async def test_a_caller_has_a_number_of_calls_at_a_time() -> None:
    async def work(context: Any, events: Any) -> None:
        await events.working()
        await anyio.sleep_forever()

    async with grpc_daemon(agent_of(work), http_max_requests=1) as client, client.open() as other:
        events = client.begin("SendStreamingMessage", **said("go"))
        await events.read()
        failed = await client.failure("ListTasks", channel=other)
        info, retry = details_of(failed)
        assert (failed.code(), info.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED")
        assert retry.retry_delay.seconds == 1
        events.cancel()
        await until(lambda: client.listener.settled)
        await client.call("ListTasks", channel=other)


async def test_a_message_has_a_number_of_bytes_and_is_not_compressed() -> None:
    async with grpc_daemon(agent_of(), max_message_bytes=10_000) as client:
        assert (await client.send("x" * 4000)).task.id
        failed = await client.failure("SendMessage", **said("x" * 6000))
        assert failed.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        packed = await client.failure("SendMessage", compression=grpc.Compression.Gzip, **said("x" * 5_000_000))
        assert packed.code() is grpc.StatusCode.UNIMPLEMENTED
        await still_answers(client)


async def test_metadata_have_a_number_of_bytes() -> None:
    async with grpc_daemon(agent_of(), max_header_bytes=2000) as client:
        failed = await client.failure("ListTasks", headers=(*V1, ("x", "y" * 3000)))
        assert failed.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        await still_answers(client)


async def test_a_large_message_passes_whole(client: GrpcClient) -> None:
    text = "x" * 3_000_000
    async with client.open(max_receive_message_length=-1) as channel:
        task = (await client.call("SendMessage", channel=channel, **said("x") | large(text))).task
    assert task.history[0].parts[0].text == text


def large(text: str) -> dict[str, Any]:
    return {"message": {"message_id": "large", "role": "ROLE_USER", "parts": [{"text": text}]}}


@pytest.mark.parametrize("name", ["SendMessage", "SendStreamingMessage"])
async def test_a_client_that_takes_nothing_loses_its_call(name: str) -> None:
    async def work(context: Any, events: Any) -> None:
        await events.complete("x" * 3_000_000)

    async with grpc_daemon(agent_of(work), frame_timeout=0.3) as client:
        call = client.channel.stream_stream(f"/{SERVICE}/{name}")(metadata=V1)
        await call.write(METHODS[f"/{SERVICE}/{name}"].request(**said("big")).SerializeToString())
        await until(lambda: client.host.memory.held("replies") > 3_000_000)
        await until(lambda: client.listener.settled)
        assert client.host.memory.held("replies") == 0
        call.cancel()
        await still_answers(client)


async def test_a_call_that_sends_no_message_has_a_bound() -> None:
    async with grpc_daemon(agent_of(), frame_timeout=0.05) as client:
        calls = [client.channel.stream_stream(f"/{SERVICE}/SendMessage")(metadata=V1) for _ in range(100)]
        assert {await call.code() for call in calls} == {grpc.StatusCode.DEADLINE_EXCEEDED}
        empty = client.channel.stream_stream(f"/{SERVICE}/SendMessage")(metadata=V1)
        await empty.done_writing()
        assert await empty.code() is grpc.StatusCode.INVALID_ARGUMENT
        await still_answers(client)
        await until(lambda: client.listener.settled)


# -- the end --


async def test_the_end_lets_calls_finish_and_refuses_others() -> None:
    going = anyio.Event()

    async def work(context: Any, events: Any) -> None:
        await events.working()
        await going.wait()
        await events.complete("done")

    async with grpc_daemon(agent_of(work), drain_timeout=60) as client:
        events = client.begin("SendStreamingMessage", **said("go"))
        await events.read()
        client.daemon.ask_to_end("shutdown")
        await until(lambda: client.daemon.lifecycle.draining)
        assert (await client.failure("ListTasks")).code() is grpc.StatusCode.UNAVAILABLE
        going.set()
        assert [each.WhichOneof("payload") for each in await rest_of(events)][-1] == "status_update"
        assert await events.code() is grpc.StatusCode.OK


async def test_a_call_that_takes_longer_than_the_end_is_told_so() -> None:
    async def work(context: Any, events: Any) -> None:
        await anyio.sleep_forever()

    async with grpc_daemon(agent_of(work)) as client:
        call = client.begin("SendStreamingMessage", **said("go"))
        await call.read()
        client.daemon.ask_to_end("shutdown")
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await rest_of(call)
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE


# -- how it is begun --


async def test_tls_has_the_files_of_http(tmp_path: Path) -> None:
    authority = Authority("test")
    cert, key = authority.for_localhost()
    (tmp_path / "cert.pem").write_bytes(cert)
    (tmp_path / "key.pem").write_bytes(key)
    (tmp_path / "both.pem").write_bytes(key + cert)
    trusted = grpc.ssl_channel_credentials(authority.certificate)
    for files in ({"http_cert": "cert.pem", "http_key": "key.pem"}, {"http_cert": "both.pem"}):
        paths = {name: str(tmp_path / file) for name, file in files.items()}
        async with grpc_daemon(agent_of(), **paths) as client, client.open(trusted) as channel:
            assert (await client.send("safe", channel=channel)).task.id
            failed = await client.failure("ListTasks", timeout=5)
            assert failed.code() is grpc.StatusCode.UNAVAILABLE  # without TLS


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"grpc": "0.0.0.0:0"}, "--grpc 0.0.0.0:0: others could call it; add --token"),
        ({"backend": "trio"}, "--grpc needs --backend asyncio or uvloop"),
        ({"grpc": "unix:socket"}, "--grpc unix:socket: gRPC is served at HOST:PORT"),
        ({"grpc": "nowhere.invalid:0", "http_open": True}, "--grpc nowhere.invalid:0"),
        ({"http_key": "app.py"}, "--http-key needs --http-cert"),
        ({"http_cert": "app.py"}, "there is no certificate in PEM form"),
    ],
)
async def test_what_can_not_be_served_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "app.py").touch()
    with pytest.raises(AppError) as caught:
        async with grpc_daemon(agent_of(), **settings):
            raise AssertionError("it is served")
    assert told in str(caught.value)


@pytest.mark.parametrize("missing", ["grpc", "google.protobuf.any_pb2"])
def test_without_its_libraries_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    for name in [name for name in sys.modules if name.startswith("discreet.gateway.grpc.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(AppError, match=r"--grpc needs grpcio and protobuf: pip install 'discreet\[grpc\]'"):
        import_module("discreet.gateway.grpc.listener")


async def test_two_daemons_do_not_share_a_port(client: GrpcClient) -> None:
    with pytest.raises(AppError, match="Address already in use"):
        async with grpc_daemon(agent_of(), grpc=client.address):
            raise AssertionError("it is served")


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (("--grpc", "127.0.0.1"), "HOST:PORT"),
        (("--grpc", "127.0.0.1:0", "--http-page"), "--http-page is for HTTP; add --http HOST:PORT"),
    ],
)
def test_wrong_flags_are_one_line(flags: tuple[str, ...], told: str) -> None:
    done = in_process("serve", "--isolated", *flags)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert told in done.stderr


# -- bytes that are no calls --


async def still_answers(client: GrpcClient) -> None:
    """Whether the daemon does."""
    async with client.open() as channel:
        assert (await client.failure("GetTask", channel=channel, id="none")).code() is grpc.StatusCode.NOT_FOUND


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/grpc\r\nContent-Length: 1000000\r\n\r\n",
        b'{"jsonrpc":"2.0","id":1,"method":"version"}\n',
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + os.urandom(1000),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\x00\x00\x00\x00\x00\x00",
        os.urandom(10_000),
        b"",
    ],
    ids=["http 1", "http 1 post", "json-rpc", "tls", "random frames", "large frame", "random", "nothing"],
)
async def test_other_bytes_on_the_port_do_no_harm(client: GrpcClient, sent: bytes) -> None:
    with socket.create_connection(("127.0.0.1", client.port), 60) as sock:
        sock.sendall(sent)
        await still_answers(client)
    await still_answers(client)


@pytest.mark.parametrize("body", [b"\xff\xff", b"\x0a\xff", os.urandom(1000), b"\x0a\x02\xc3\x28"])
async def test_a_message_that_is_none_is_an_invalid_argument(client: GrpcClient, body: bytes) -> None:
    for name in ("SendMessage", "SendStreamingMessage"):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await client.channel.unary_unary(f"/{SERVICE}/{name}")(body, metadata=V1)
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    await still_answers(client)
