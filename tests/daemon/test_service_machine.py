"""A service under every interleaving of calls, streams, cancels, deadlines, failures, slow readers and ends.

Whatever the order: every request gets exactly one answer, every stream its sequence without gaps, nothing follows an
answer, and nothing is left behind.
"""

from __future__ import annotations

import gc
import json
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Context, OperationError, Service
from discreet.daemon.daemon import Daemon
from discreet.daemon.host import Host
from discreet.daemon.settings import Settings
from discreet.framing.encoder import encode_frame
from discreet.framing.events import NEED_DATA, Frame, FrameLimits
from discreet.framing.parser import parser_for
from discreet.framing.transports.memory import MemoryTransport, memory_pair
from support.waits import DEADLINE_SECONDS

Serving = Callable[..., AbstractAsyncContextManager[Any]]


class Declared(OperationError, code="DECLARED"):
    """It was to be expected."""


class Hosted:
    """One operation of every kind, and how many handlers are inside."""

    def __init__(self) -> None:
        self.inside = 0
        self.service = service = Service("it", uses=["it/inline", "it/thread", "it/waits", "it/fails"])

        @service.query(inline=True)
        def inline(n: int) -> int:
            return n

        @service.query(name="async")
        async def coroutine(n: int) -> int:
            await anyio.lowlevel.checkpoint()
            return n

        @service.query()
        def thread(n: int) -> int:
            return n

        @service.query(serial=True)
        async def serial(n: int) -> int:
            await anyio.lowlevel.checkpoint()
            return n

        @service.query(keyed="n", limit=3)
        def keyed(n: int) -> int:
            return n

        @service.query(errors=[Declared])
        async def fails(n: int) -> int:
            raise Declared if n % 2 else ValueError

        @service.query(timeout=None)
        async def waits(n: int) -> int:
            self.inside += 1
            try:
                await anyio.sleep_forever()
            finally:
                self.inside -= 1
            return n

        @service.query(timeout=None)
        def waits_in_thread(ctx: Context, n: int) -> int:
            ctx.wait_cancelled(DEADLINE_SECONDS)
            return n

        @service.query(timeout=0.002)
        async def brief(n: int) -> int:
            await anyio.sleep_forever()
            return n

        @service.query(timeout=None)
        async def calls(ctx: Context, n: int) -> Any:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ctx.call, "it/thread", {"n": n})
                tasks.start_soon(ctx.call, "it/inline", {"n": n})
            return await ctx.call("it/waits" if n % 3 == 2 else "it/fails" if n % 3 else "it/thread", {"n": n})

        @service.query(timeout=None)
        def calls_in_thread(ctx: Context, n: int) -> Any:
            return ctx.call_blocking("it/waits" if n % 3 == 2 else "it/thread", {"n": n})

        @service.subscription()
        async def stream(n: int) -> AsyncIterator[str]:
            self.inside += 1
            try:
                for number in range(n):
                    if number % 7 == 0:
                        await anyio.lowlevel.checkpoint()
                    yield f"{number} {'x' * (n % 5) * 500}"
                if n % 4 == 3:
                    raise Declared
            finally:
                self.inside -= 1

        @service.subscription()
        async def endless(n: int) -> AsyncIterator[int]:
            self.inside += 1
            try:
                while True:
                    yield n
            finally:
                self.inside -= 1


METHODS = ["inline", "async", "thread", "serial", "keyed", "fails", "waits", "waits_in_thread", "brief", "calls"]
METHODS += ["calls_in_thread", "stream", "endless", "none"]

SCRIPTS = st.lists(
    st.one_of(
        st.tuples(st.just("call"), st.tuples(st.sampled_from(METHODS), st.integers(0, 120))),
        st.tuples(st.just("notify"), st.tuples(st.sampled_from(METHODS[:6]), st.integers(0, 9))),
        st.tuples(st.just("cancel"), st.integers(0, 40)),
        st.tuples(st.just("read"), st.integers(1, 60)),
        st.tuples(st.just("run"), st.integers(0, 5)),
    ),
    max_size=40,
)


class Client:
    """Sends at once, reads when it is told to, and checks the promises on everything that it reads."""

    def __init__(self, transport: MemoryTransport) -> None:
        self._transport = transport
        self._parser = parser_for("content-length", FrameLimits(max_body=1 << 30))
        self.sent = 0
        self.answers: dict[int, dict[str, Any]] = {}
        self.events: dict[int, int] = {}
        self.ended = False

    def send(self, method: str, params: Any, *, notification: bool = False) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        if not notification:
            message["id"] = self.sent
            self.sent += 1
        frame = encode_frame(json.dumps(message).encode(), "content-length")
        assert self._transport.send_nowait(frame) == len(frame)

    def read_nowait(self) -> bool:
        """Take one message if there is one."""
        event = self._parser.next_event()
        if event is NEED_DATA:
            data = self._transport.receive_nowait()
            if data == b"":
                self.ended = True
            elif data:
                self._parser.receive_data(data)
                return self.read_nowait()
            return False
        assert isinstance(event, Frame)
        self._check(json.loads(event.body))
        return True

    def _check(self, message: dict[str, Any]) -> None:
        if "method" in message:
            params = message["params"]
            assert params["id"] not in self.answers, "an event follows its answer"
            self.events[params["id"]] = self.events.get(params["id"], 0) + 1
            assert params["seq"] == self.events[params["id"]], "a gap"
            return
        assert message["id"] not in self.answers, "a second answer"
        assert ("result" in message) != ("error" in message)
        self.answers[message["id"]] = message
        result = message.get("result")
        if isinstance(result, dict) and "completed" in result:
            assert result == {"completed": True, "events": self.events.get(message["id"], 0)}

    async def read_to_the_end(self) -> None:
        while not self.ended:
            if not self.read_nowait() and not self.ended:
                await anyio.lowlevel.checkpoint()


def left_behind(daemon: Daemon) -> dict[str, object]:
    """Whatever of the daemon's tables holds something that belongs to a request."""
    tables = {**daemon.host.scheduler.counts(), **daemon.connection.counts()}
    return {name: size for name, size in tables.items() if size}


async def perform(script: list[tuple[str, Any]], finale: str, limit: int) -> None:
    ours, theirs = memory_pair()
    hosted = Hosted()
    daemon = Daemon(Host([hosted.service], Settings(drain_timeout=0.2, max_concurrency=limit), version="1"), ours)
    client = Client(theirs)

    async def run() -> None:
        daemon.begin()
        assert await daemon.run() == 0
        ours.close()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        with anyio.fail_after(DEADLINE_SECONDS):
            for step, what in script:
                await play(client, step, what)
            if finale != "cut":
                for number in range(client.sent):
                    client.send("$/cancelRequest", {"id": number}, notification=True)
            if finale == "shutdown":
                client.send("shutdown", None)
            theirs.send_eof()
            await client.read_to_the_end()
    assert sorted(client.answers) == list(range(client.sent))
    assert hosted.inside == 0
    left = left_behind(daemon)
    if finale == "cut":  # threads can't be interrupted: what they hold is let go when they come home
        for name in (
            "requests",
            "running",
            "limited",
            "groups",
            "deadlines",
            "open",
            "threads_busy",
            "threads_parked",
            "threads_done",
        ):
            left.pop(name, None)
    assert left == {}


async def play(client: Client, step: str, what: Any) -> None:
    match step:
        case "call":
            client.send(f"it/{what[0]}", {"n": what[1]})
        case "notify":
            client.send(f"it/{what[0]}", {"n": what[1]}, notification=True)
        case "cancel":
            client.send("$/cancelRequest", {"id": what}, notification=True)
        case "read":
            for _ in range(what):
                if not client.read_nowait():
                    break
        case _:
            for _ in range(what):
                await anyio.lowlevel.checkpoint()


@settings(max_examples=25, deadline=None)
@given(
    script=SCRIPTS,
    finale=st.sampled_from(["end-of-input", "shutdown", "end-of-input", "shutdown", "cut"]),
    limit=st.sampled_from([1, 2, 64]),
    backend=st.sampled_from(["asyncio", "trio"]),
)
def test_every_request_gets_one_answer_and_nothing_is_left_behind(
    script: list[tuple[str, Any]], finale: str, limit: int, backend: str
) -> None:
    anyio.run(perform, script, finale, limit, backend=backend)


# -- no growth -----------------------------------------------------------------------------------------------------

ROUNDS = 10_000
BATCH = 50
KINDS = ["inline", "async", "thread", "serial", "keyed", "fails", "calls", "stream", "waits", "none"]


async def rounds(wire: Any, count: int, first: int) -> None:
    """So many requests, a batch at a time; those that would wait are cancelled."""
    for start in range(first, first + count, BATCH):
        requests = []
        for number in range(start, start + BATCH):
            kind = KINDS[number % len(KINDS)]
            n = {"stream": 4, "calls": 0}.get(kind, number % 2)
            requests.append(wire.request(f"it/{kind}", {"n": n}, id=number))
            if kind == "waits":
                requests.append({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": number}})
        await wire.send(*requests)
        answered = 0
        while answered < BATCH:
            answered += "id" in await wire.receive()
    with anyio.fail_after(DEADLINE_SECONDS):
        while not wire.daemon.host.idle:
            await anyio.lowlevel.checkpoint()


def living_tasks() -> int:
    import sniffio  # anyio's own way to tell

    if sniffio.current_async_library() == "trio":
        import trio

        return trio.lowlevel.current_statistics().tasks_living
    import asyncio

    return len(asyncio.all_tasks())


def held() -> int:
    """Objects that the collector knows, without those of the log, which keeps a bounded number of lines."""
    gc.collect()
    return sum(not str(type(found).__module__).startswith("discreet.daemon.logs") for found in gc.get_objects())


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # what is kept is kept on either loop
async def test_ten_thousand_rounds_leave_no_growth(serving: Serving) -> None:
    async with serving(Hosted().service) as wire:
        await rounds(wire, 1000, 0)
        tasks, objects, threads = living_tasks(), held(), threading.active_count()
        await rounds(wire, ROUNDS, 1000)
        assert left_behind(wire.daemon) == {}
        assert living_tasks() <= tasks + BATCH
        assert threading.active_count() <= threads + BATCH
        assert held() - objects < ROUNDS / 20
        assert left_behind(wire.daemon) == {}
