"""One daemon leaves its connection to another, in memory: nothing is lost, nothing is answered twice."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from discreet import Context, Service
from discreet.daemon.daemon import Daemon
from discreet.daemon.host import Host
from discreet.daemon.process.reexec import NEW_CONNECTION, ConnectionState
from discreet.daemon.settings import Settings
from discreet.framing.encoder import encode_frame
from discreet.framing.transports.memory import MemoryTransport, memory_pair
from support.waits import until

pytestmark = pytest.mark.anyio


def service(name: str, hold: anyio.Event) -> Service:
    app = Service("app")

    @app.query(inline=True)
    def who() -> str:
        return name

    @app.query()
    async def held() -> str:
        await hold.wait()
        return name

    @app.query()
    async def ask(ctx: Context) -> int:
        return await ctx.request("client/one", None, type=int)

    @app.subscription()
    async def ticks() -> AsyncIterator[int]:
        yield 1
        await hold.wait()

    return app


class Line:
    """Both daemons, one after the other, on one end of a pair; the test is at the other."""

    def __init__(self, wire: Any, transport: MemoryTransport, hold: anyio.Event, settings: Settings) -> None:
        self.wire = wire
        self.hold = hold
        self.carried: ConnectionState | None = None
        self.daemons: list[Daemon] = []
        self.statuses: list[int] = []
        self.on_swap: Callable[[ConnectionState], object] = self.keep
        self._transport = transport
        self._settings = settings

    async def serve(self) -> None:
        """Daemon after daemon, until one ends without leaving the connection to another."""
        carried: ConnectionState | None = NEW_CONNECTION
        while carried is not None:
            self.carried = None
            apps = [service(f"daemon {len(self.daemons)}", self.hold)]
            host = Host(apps, self._settings, version="1")
            daemon = Daemon(host, self._transport, state=carried, on_swap=self._swapped)
            self.daemons.append(daemon)
            daemon.begin()
            self.statuses.append(await daemon.run())
            carried = self.carried

    def _swapped(self, state: ConnectionState) -> None:
        self.on_swap(state)

    def keep(self, carried: ConnectionState) -> None:
        self.carried = carried


@asynccontextmanager
async def lines(wire_class: Any, capacity: int = 65536, **settings: Any) -> AsyncIterator[Line]:
    ours, theirs = memory_pair(capacity)
    line = Line(wire_class(theirs, None), ours, anyio.Event(), Settings(**settings))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(line.serve)
        yield line
        line.hold.set()
        theirs.close()
        tasks.cancel_scope.cancel()


async def test_what_runs_finishes_and_what_comes_meanwhile_is_answered_by_the_next(wire_class: Any) -> None:
    async with lines(wire_class) as line:
        wire = line.wire
        await wire.send(wire.request("app/held"), wire.request("app/who"))
        assert (await wire.receive())["result"] == "daemon 0"
        await until(line.daemons[0].swap)
        await until(lambda: line.daemons[0].lifecycle.state == "swapping")
        await wire.send(wire.request("app/who"))
        line.hold.set()
        assert [(m["id"], m["result"]) for m in await wire.receive_all(2)] == [(1, "daemon 0"), (3, "daemon 1")]
        assert line.statuses == [0]


async def test_what_outlasts_the_window_is_answered_unavailable_streams_too(wire_class: Any) -> None:
    async with lines(wire_class, drain_timeout=0.1) as line:
        wire = line.wire
        await wire.send(wire.request("app/held"), wire.request("app/ticks"))
        assert (await wire.receive())["params"]["value"] == 1
        await until(line.daemons[0].swap)
        answers = {m["id"]: m["error"]["data"]["code"] for m in await wire.receive_all(2)}
        assert answers == {1: "UNAVAILABLE", 2: "UNAVAILABLE"}
        assert (await wire.call("app/who"))["result"] == "daemon 1"


@pytest.mark.parametrize("at", [0, 20, 60])
async def test_a_part_of_a_frame_goes_on_in_the_next(wire_class: Any, at: int) -> None:
    async with lines(wire_class) as line:
        wire = line.wire
        await wire.call("app/who")
        frame = encode_frame(b'{"jsonrpc":"2.0","id":"split","method":"app/who"}', "content-length")
        await wire.transport.send(
            encode_frame(b'{"jsonrpc":"2.0","id":"v","method":"version"}', "content-length") + frame[:at]
        )
        assert (await wire.receive())["id"] == "v"
        await until(line.daemons[0].swap)
        await until(lambda: len(line.daemons) == 2)
        await wire.transport.send(frame[at:])
        assert await wire.receive() == {"jsonrpc": "2.0", "id": "split", "result": "daemon 1"}


async def test_what_a_slow_reader_has_not_taken_is_sent_by_the_next(wire_class: Any) -> None:
    async with lines(wire_class, capacity=700, drain_timeout=0.2) as line:
        wire = line.wire
        requests = [wire.request("app/who") for _ in range(60)]
        for request in requests:
            await wire.send(request)  # a few at a time fit; their answers wait
        await until(line.daemons[0].swap)
        await until(lambda: len(line.daemons) == 2)
        answers = await wire.receive_all(60)
        assert [m["id"] for m in answers] == [r["id"] for r in requests]


async def test_no_swap_while_something_is_wrong_with_the_input(wire_class: Any) -> None:
    async with lines(wire_class, max_message_bytes=1000) as line:
        wire = line.wire
        good = encode_frame(b'{"jsonrpc":"2.0","id":"v","method":"version"}', "content-length")
        await wire.transport.send(good + b"Content-Length: 2000\r\n\r\n")
        assert (await wire.receive())["id"] == "v"
        assert not line.daemons[0].swap()
        await wire.transport.send(b"x" * 2000)
        assert (await wire.receive())["error"]["data"] == {"reason": "oversize"}
        await until(line.daemons[0].swap)
        await until(lambda: len(line.daemons) == 2)
        assert (await wire.call("app/who"))["result"] == "daemon 1"


async def test_a_reason_to_end_wins_over_a_swap_under_way(wire_class: Any) -> None:
    async with lines(wire_class) as line:
        wire = line.wire
        await wire.send(wire.request("app/held"), wire.request("app/who"))
        await wire.receive()
        await until(line.daemons[0].swap)
        await until(lambda: line.daemons[0].lifecycle.state == "swapping")
        line.daemons[0].ask_to_end("signal")
        await until(lambda: line.daemons[0].lifecycle.state == "draining")
        line.hold.set()
        assert (await wire.receive())["result"] == "daemon 0"
        await until(lambda: line.statuses == [0])
        assert len(line.daemons) == 1


async def test_ids_of_requests_to_the_client_are_not_used_again(wire_class: Any) -> None:
    async with lines(wire_class, drain_timeout=0.1) as line:
        wire = line.wire
        await wire.send(wire.request("app/ask"))
        first = await wire.receive()
        await until(line.daemons[0].swap)
        await until(lambda: len(line.daemons) == 2)
        await wire.send(wire.request("app/ask"), {"jsonrpc": "2.0", "id": first["id"], "result": 13})
        asked: dict[str, Any] = {}
        while asked.get("method") != "client/one":
            asked = await wire.receive()
        assert asked["id"] != first["id"]
        await wire.send({"jsonrpc": "2.0", "id": asked["id"], "result": 7})
        assert (await wire.receive())["result"] == 7


async def test_processes_that_the_client_named_are_carried_over(wire_class: Any) -> None:
    async with lines(wire_class) as line:
        await line.wire.call("initialize", {"processId": os.getpid()})
        seen: list[ConnectionState] = []
        line.on_swap = lambda carried: (seen.append(carried), line.keep(carried))[0]
        await until(line.daemons[0].swap)
        await until(lambda: bool(seen))
        assert seen[0].watched == (os.getpid(),)
        assert seen[0].framing == "content-length"
