"""One host serves several clients: what is shared, and what never crosses from one to the other."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import anyio
import pytest

from discreet import Context, DeclarationError, Service
from discreet.agents import Agent, RequestContext, TaskEvents
from discreet.daemon.apps import AppError
from discreet.daemon.connection.connection import Connection
from discreet.daemon.daemon import Daemon
from discreet.daemon.host import Host
from discreet.daemon.hosting import credentials_of
from discreet.daemon.settings import Settings
from discreet.framing.encoder import encode_frame
from discreet.framing.transports.memory import memory_pair
from support.logged_events import LoggedEvents
from support.waits import DEADLINE_SECONDS

pytestmark = pytest.mark.anyio


class Owner:
    """Runs a second connection; its client may not end the daemon."""

    def __init__(self) -> None:
        self.lost = False
        self.asked: list[str] = []

    def on_output_lost(self, cause: BaseException | None) -> None:
        self.lost = True

    def on_progress(self) -> None: ...

    def begin_shutdown(self) -> None:
        self.asked.append("shutdown")

    def exit(self) -> None:
        self.asked.append("exit")

    def watch_client(self, pid: int) -> None:
        self.asked.append("watch")


class Shop:
    """What both clients call."""

    def __init__(self) -> None:
        self.service = service = Service("shop", uses=["shop/tell"])
        self.hold = anyio.Event()
        self.running = 0
        self.most = 0

        @service.query()
        async def echo(value: Any) -> Any:
            return value

        @service.query(timeout=None)
        async def wait() -> str:
            await self.hold.wait()
            return "held"

        @service.query(serial=True, timeout=None)
        async def alone() -> None:
            self.running += 1
            self.most = max(self.most, self.running)
            await anyio.lowlevel.checkpoint()
            self.running -= 1

        @service.query()
        async def tell(ctx: Context, text: str) -> None:
            await ctx.notify("told", {"text": text})

        @service.query()
        async def pass_on(ctx: Context, text: str) -> None:
            await ctx.call("shop/tell", {"text": text})

        @service.query()
        async def ask(ctx: Context) -> Any:
            return await ctx.request("question", {})

        @service.query(inline=True)
        def large(size: int) -> str:
            return "x" * size


@asynccontextmanager
async def two_clients(wire_class: Any, shop: Shop) -> AsyncIterator[tuple[Any, Any, Owner]]:
    """The wires of a daemon's own client and of a second one on the same host."""
    host = Host([shop.service], Settings(drain_timeout=0.2), version="1")
    ours, theirs = memory_pair()
    daemon = Daemon(host, ours)
    owner = Owner()
    ours_too, theirs_too = memory_pair()
    second = Connection(host, ours_too, owner)
    first_wire, second_wire = wire_class(theirs, daemon), wire_class(theirs_too, daemon)

    async def run() -> None:
        daemon.begin()
        first_wire.status = await daemon.run()
        first_wire.ended.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        tasks.start_soon(second.writer.run)
        tasks.start_soon(second.read)
        yield first_wire, second_wire, owner
        tasks.cancel_scope.cancel()
    second.close()
    theirs.close()
    theirs_too.close()


async def test_ids_of_one_client_are_not_those_of_the_other(wire_class: Any) -> None:
    shop = Shop()
    async with two_clients(wire_class, shop) as (first, second, _):
        for wire in (first, second):
            await wire.send(wire.request("shop/wait", id=1))
            assert (await wire.call("shop/echo", {"value": 2}))["result"] == 2
        await second.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 1}})
        assert (await second.receive())["error"]["code"] == -32800
        shop.hold.set()
        assert await first.receive() == {"jsonrpc": "2.0", "id": 1, "result": "held"}


async def test_a_serial_operation_runs_once_at_a_time_for_all_clients(wire_class: Any) -> None:
    shop = Shop()
    async with two_clients(wire_class, shop) as (first, second, _):
        for wire in (first, second):
            await wire.send(*(wire.request("shop/alone") for _ in range(20)))
        for wire in (first, second):
            assert all("result" in reply for reply in await wire.receive_all(20))
        assert shop.most == 1


@pytest.mark.parametrize("method", ["shop/tell", "shop/pass_on"])
async def test_notifications_go_to_the_client_that_made_the_request(wire_class: Any, method: str) -> None:
    async with two_clients(wire_class, Shop()) as (first, second, _):
        for wire, text in ((first, "one"), (second, "two")):
            await wire.send(wire.request(method, {"text": text}))
            assert (await wire.receive())["params"] == {"text": text}
            assert (await wire.receive())["result"] is None


async def test_a_request_of_the_daemon_is_answered_by_the_client_that_it_was_sent_to(wire_class: Any) -> None:
    async with two_clients(wire_class, Shop()) as (first, second, _):
        asked = {}
        for name, wire in (("first", first), ("second", second)):
            await wire.send(wire.request("shop/ask", id=name))
            asked[name] = (await wire.receive())["id"]
        await second.send({"jsonrpc": "2.0", "id": asked["second"], "result": "two"})
        assert await second.receive() == {"jsonrpc": "2.0", "id": "second", "result": "two"}
        await first.send({"jsonrpc": "2.0", "id": asked["first"], "result": "one"})
        assert await first.receive() == {"jsonrpc": "2.0", "id": "first", "result": "one"}


async def test_a_client_that_does_not_read_holds_up_no_other(wire_class: Any) -> None:
    async with two_clients(wire_class, Shop()) as (first, second, _):
        await second.send(*(second.request("shop/large", {"size": 1_000_000}) for _ in range(20)))
        await second.send(second.request("shop/echo", {"value": "late"}))
        for number in range(50):
            assert (await first.call("shop/echo", {"value": number}))["result"] == number
        for _ in range(20):
            assert len((await second.receive())["result"]) == 1_000_000
        assert (await second.receive())["result"] == "late"


async def test_the_end_of_one_client_is_not_that_of_the_other(wire_class: Any) -> None:
    async with two_clients(wire_class, Shop()) as (first, second, owner):
        assert (await second.call("shutdown"))["result"] == {"message": "Shutting down gracefully"}
        second.transport.send_eof()
        assert owner.asked == ["shutdown"]
        assert (await first.call("shop/echo", {"value": 1}))["result"] == 1
        first.transport.send_eof()
        with anyio.fail_after(DEADLINE_SECONDS):
            await first.ended.wait()
        assert first.status == 0


async def test_abandoning_one_client_answers_only_its_requests(wire_class: Any) -> None:
    shop = Shop()
    host = Host([shop.service], Settings(), version="1")
    ends = [memory_pair(), memory_pair()]
    connections = [Connection(host, ours, Owner()) for ours, _ in ends]
    async with anyio.create_task_group() as tasks:
        host.start(tasks, connections[0].context_backend, on_wakeup=lambda: None)
        wires = [wire_class(theirs, None) for _, theirs in ends]
        for connection, wire in zip(connections, wires, strict=True):
            tasks.start_soon(connection.writer.run)
            tasks.start_soon(connection.read)
            await wire.send(wire.request("shop/wait", id="w"))
            assert (await wire.call("version"))["result"] == {"version": "1"}
        connections[1].abandon()
        assert (await wires[1].receive())["error"]["data"]["code"] == "UNAVAILABLE"
        assert connections[1].unanswered == 0
        assert connections[0].unanswered == 1
        shop.hold.set()
        assert (await wires[0].receive())["result"] == "held"
        tasks.cancel_scope.cancel()
    for (ours, theirs), connection in zip(ends, connections, strict=True):
        connection.close()
        ours.close()
        theirs.close()
    host.close(0.0)


def test_a_builtin_method_can_not_be_declared_again() -> None:
    service = Service("")

    @service.query()
    def version() -> str:
        return "mine"

    with pytest.raises(DeclarationError, match="version"):
        Connection(Host([service], Settings(), version="1"), memory_pair()[0], Owner())


def test_frames_of_both_framings_may_be_spoken_to_one_host() -> None:
    host = Host([Shop().service], Settings(framing="auto"), version="1")
    for framing in ("content-length", "newline"):
        ours, theirs = memory_pair()
        connection = Connection(host, ours, Owner())
        message = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "version"}).encode()
        theirs.send_nowait(memoryview(encode_frame(message, framing)))
        connection.begin()
        reply = theirs.receive_nowait()
        assert reply == encode_frame(b'{"jsonrpc":"2.0","id":1,"result":{"version":"1"}}', framing)
        connection.close()


class Idle:
    async def execute(self, context: RequestContext, events: TaskEvents) -> None: ...

    async def cancel(self, context: RequestContext, events: TaskEvents) -> None: ...


@pytest.mark.parametrize("dialect", ["lsp", "mcp"])
async def test_an_agent_that_no_client_can_reach_is_refused_or_logged(
    logged: LoggedEvents, dialect: Literal["lsp", "mcp"]
) -> None:
    agent, settings = Agent(Idle(), name="Clerk", description="Waits."), Settings(dialect=dialect)
    with pytest.raises(DeclarationError, match=f"agent 'Clerk': with --dialect {dialect} nobody can reach"):
        Host([], settings, version="1", agent=agent)
    Host([Service("shop")], settings, version="1", agent=agent)
    assert logged.names() == ["agent.unreachable"]


@pytest.mark.parametrize("declared", ["hover", "command", "prompt"])
async def test_methods_that_clients_of_a_plain_server_never_find_are_logged(
    logged: LoggedEvents, declared: Literal["hover", "command", "prompt"]
) -> None:
    service = Service("shop")

    def work() -> None: ...

    def ask() -> str:
        return "well?"

    match declared:
        case "hover":
            service.query("textDocument/hover")(work)
        case "command":
            service.command(work)
        case "prompt":
            service.prompt(ask)
    meant: Literal["mcp", "lsp"] = "mcp" if declared == "prompt" else "lsp"
    Host([service], Settings(dialect=meant), version="1")
    Host([service], Settings(dialect="plain"), version="1")
    assert logged.names() == []
    Host([service], Settings(), version="1")
    ((event, fields),) = logged()
    assert (event, len(fields["methods"])) == ("dialect.undeclared", 1)
    assert f"dialect={meant!r}" in fields["hint"]


async def test_declarations_that_a_dialect_refuses_name_their_lines() -> None:
    service = Service("shop")
    for name in ("a.b", "a/b"):
        service.query(name)(lambda: None)
    host = Host([service], Settings(dialect="mcp"), version="1")
    with pytest.raises(DeclarationError, match=r"\(test_host.py:\d+, test_host.py:\d+\)$"):
        Daemon(host, memory_pair()[0])


async def test_a_method_of_the_daemons_own_can_not_be_declared() -> None:
    service = Service("services")
    service.query("services/list")(lambda: None)
    with pytest.raises(DeclarationError, match=r"daemon's own methods: services/list \(test_host.py:\d+\)"):
        Host([service], Settings(), version="1")


async def test_a_credential_that_can_not_be_read_says_why(tmp_path: Path) -> None:
    service = Service("shop", credentials=["key"])
    with pytest.raises(AppError, match=f"key: its file can't be read: {os.strerror(errno.ENOENT)}"):
        credentials_of(Settings(credentials=(f"key={tmp_path}/gone",)), [service])
    (tmp_path / "key").write_bytes(b"\xff")
    with pytest.raises(AppError, match="no UTF-8 text"):
        credentials_of(Settings(credentials=(f"key={tmp_path}/key",)), [service])
