"""Servers that die and are started anew: how often, who notices, and what is never repeated."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.client import Attempt, ConnectionFailed, Loss, Peer, RequestTimeout, RestartPolicy, RetryPolicy, connect
from discreet.client.connection.connection import Connection
from discreet.client.connection.connector import opened
from discreet.client.connection.handlers import Handlers
from discreet.client.peer import Defaults
from discreet.client.policies.restart import RestartingConnector, Restarts
from discreet.client.task_group import background_tasks
from discreet.framing.transports.interface import MemoryTransport, memory_pair
from support.waits import DEADLINE_SECONDS

# -- how often --------------------------------------------------------------------------------------------------------


def test_the_first_restart_is_immediate_and_each_further_one_waits_twice_as_long() -> None:
    restarts, pauses = Restarts(RestartPolicy(limit=7, initial=0.5, cap=4.0)), []
    for _ in range(8):
        pauses.append(restarts.pause(0.0))
        restarts.count(0.0)
    assert pauses == [0.0, 0.5, 1.0, 2.0, 4.0, 4.0, 4.0, None]


def test_restarts_long_ago_no_longer_count() -> None:
    restarts = Restarts(RestartPolicy(limit=2, within=60.0, initial=0.5))
    restarts.count(0.0)
    restarts.count(30.0)
    assert [restarts.pause(now) for now in (59.0, 60.0, 89.0, 90.0)] == [None, 0.5, 0.5, 0.0]


def test_a_limit_of_none_allows_no_restart() -> None:
    assert Restarts(RestartPolicy(limit=0)).pause(0.0) is None


@given(
    limit=st.integers(0, 5),
    within=st.floats(0.1, 100),
    gaps=st.lists(st.floats(0, 100), max_size=40),
)
def test_no_stretch_of_time_ever_holds_more_restarts_than_the_limit(
    limit: int, within: float, gaps: list[float]
) -> None:
    restarts, now, done = Restarts(RestartPolicy(limit=limit, within=within)), 0.0, list[float]()
    for gap in gaps:
        now += gap
        if restarts.pause(now) is not None:
            restarts.count(now)
            done.append(now)
    assert all(len([at for at in done if end - within < at <= end]) <= limit for end in done)


@pytest.mark.parametrize("numbers", [{"limit": -1}, {"within": 0}, {"initial": -1}, {"cap": float("nan")}])
def test_a_policy_that_makes_no_sense_is_refused(numbers: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        RestartPolicy(**numbers)


# -- a line whose servers the test plays ------------------------------------------------------------------------------


class TurnedTiming:
    """A clock that only sleeping moves on."""

    def __init__(self) -> None:
        self.time = 1000.0
        self.slept: list[float] = []

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        await anyio.lowlevel.checkpoint()
        self.slept.append(seconds)
        self.time += seconds

    def jitter(self) -> float:
        return 0.0


class Servers:
    """Begins servers, all of them in memory, and counts those that live."""

    def __init__(self) -> None:
        self.served = Handlers()
        self.ends: list[MemoryTransport] = []
        self.living = 0
        self.broken = False

    @asynccontextmanager
    async def begin(self) -> AsyncGenerator[Connection]:
        if self.broken:
            raise ConnectionFailed(Loss("no such program"), sent=False)
        ours, theirs = memory_pair()
        self.ends.append(theirs)
        self.living += 1
        assert self.living == 1, "two servers at once"
        try:
            async with opened(ours, self.served, framing="content-length", explain=self._explain) as connection:
                yield connection
        finally:
            await anyio.lowlevel.cancel_shielded_checkpoint()
            self.living -= 1

    async def _explain(self) -> Loss:
        return Loss(f"server {len(self.ends)} died", status=3)

    def kill(self) -> None:
        self.ends[-1].close()


@pytest.fixture
def servers() -> Servers:
    return Servers()


@asynccontextmanager
async def line_of(servers: Servers, timing: TurnedTiming, policy: RestartPolicy) -> AsyncGenerator[RestartingConnector]:
    with anyio.fail_after(DEADLINE_SECONDS):
        async with background_tasks() as tasks:
            line = RestartingConnector(servers.begin, policy, tasks=tasks, timing=timing)
            await line.connection()
            yield line
            line.close()


async def until_lost(line: RestartingConnector, servers: Servers) -> None:
    connection = await line.connection()
    servers.kill()
    await connection.lost()


@pytest.mark.anyio
async def test_a_server_that_died_is_started_anew_by_whoever_needs_it_and_by_nobody_else(servers: Servers) -> None:
    async with line_of(servers, TurnedTiming(), RestartPolicy()) as line:
        first = await line.connection()
        assert await line.connection() is first
        await until_lost(line, servers)
        await anyio.wait_all_tasks_blocked()
        assert (len(servers.ends), servers.living) == (1, 0)
        second = await line.connection()
        assert second is not first
        assert second.usable
    assert servers.living == 0


@pytest.mark.anyio
async def test_many_who_need_it_at_once_get_the_same_server(servers: Servers) -> None:
    found: list[Connection] = []

    async with line_of(servers, TurnedTiming(), RestartPolicy()) as line:
        await until_lost(line, servers)

        async def need() -> None:
            found.append(await line.connection())

        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(need)
    assert (len(found), len(set(found)), len(servers.ends)) == (20, 1, 2)


@pytest.mark.anyio
async def test_it_gives_up_clearly_and_then_fails_at_once(servers: Servers) -> None:
    timing = TurnedTiming()
    async with line_of(servers, timing, RestartPolicy(limit=3, initial=1.0, cap=60.0)) as line:
        for _ in range(4):
            assert not line.over
            await until_lost(line, servers)
        for _ in range(2):
            with pytest.raises(ConnectionFailed) as raised:
                await line.connection()
            loss = raised.value.loss
            assert (loss.gave_up, loss.status, raised.value.sent) == (True, 3, False)
            assert loss.reason.startswith("gave up")
        assert line.over
    assert (len(servers.ends), timing.slept) == (4, [0.0, 1.0, 2.0])


@pytest.mark.anyio
async def test_the_pause_is_counted_from_the_death_not_from_the_need(servers: Servers) -> None:
    timing = TurnedTiming()
    async with line_of(servers, timing, RestartPolicy(initial=5.0, within=1000.0)) as line:
        await until_lost(line, servers)
        await until_lost(line, servers)
        await anyio.wait_all_tasks_blocked()
        timing.time += 3.0
        await line.connection()
    assert timing.slept == [0.0, 2.0]


@pytest.mark.anyio
async def test_a_restart_that_fails_counts_and_is_told_to_those_who_needed_it(servers: Servers) -> None:
    async with line_of(servers, TurnedTiming(), RestartPolicy(limit=2)) as line:
        await until_lost(line, servers)
        servers.broken = True
        gave_up = []
        for _ in range(3):
            with pytest.raises(ConnectionFailed) as raised:
                await line.connection()
            gave_up.append(raised.value.loss.gave_up)
        assert gave_up == [False, False, True]


@pytest.mark.anyio
async def test_a_failed_restart_may_be_followed_by_one_that_succeeds(servers: Servers) -> None:
    async with line_of(servers, TurnedTiming(), RestartPolicy(limit=2)) as line:
        await until_lost(line, servers)
        servers.broken = True
        with pytest.raises(ConnectionFailed):
            await line.connection()
        servers.broken = False
        assert (await line.connection()).usable


@pytest.mark.anyio
async def test_who_is_cancelled_while_it_waits_leaves_the_restart_to_the_next(servers: Servers) -> None:
    async with line_of(servers, TurnedTiming(), RestartPolicy()) as line:
        await until_lost(line, servers)
        with anyio.CancelScope() as scope:
            scope.cancel()
            await line.connection()
        assert scope.cancelled_caught
        assert (await line.connection()).usable


@pytest.mark.anyio
async def test_nothing_is_started_once_the_block_is_left(servers: Servers) -> None:
    raised: list[ConnectionFailed] = []

    async def need(line: RestartingConnector) -> None:
        try:
            await line.connection()
        except ConnectionFailed as exc:
            raised.append(exc)

    async with anyio.create_task_group() as tasks:
        async with line_of(servers, TurnedTiming(), RestartPolicy()) as line:
            await until_lost(line, servers)
            tasks.start_soon(need, line)
        with pytest.raises(ConnectionFailed):
            await line.connection()
    assert (servers.living, len(servers.ends), [exc.sent for exc in raised]) == (0, 1, [False])


@pytest.mark.anyio
async def test_a_request_handler_that_raises_a_lost_connection_loses_none(servers: Servers) -> None:
    async def broken(_: object) -> None:
        raise ConnectionFailed(Loss("another connection"))

    async with line_of(servers, TurnedTiming(), RestartPolicy()) as line:
        Peer(line, servers.served).on_request("ask", broken)
        body = b'{"jsonrpc":"2.0","id":1,"method":"ask"}'
        await servers.ends[-1].send(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        assert b"-32603" in await servers.ends[-1].receive()
        assert (await line.connection()).usable


@pytest.mark.anyio
async def test_handlers_stay_registered_over_a_restart(servers: Servers) -> None:
    heard = anyio.Event()
    async with line_of(servers, TurnedTiming(), RestartPolicy()) as line:
        Peer(line, servers.served).on_notification("told", lambda _: heard.set())
        await until_lost(line, servers)
        await line.connection()
        body = b'{"jsonrpc":"2.0","method":"told"}'
        await servers.ends[-1].send(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        with anyio.move_on_after(10):
            await heard.wait()
        assert heard.is_set()


@pytest.mark.anyio
async def test_the_wait_for_a_restart_counts_into_the_timeout_of_the_call(servers: Servers) -> None:
    class Frozen(TurnedTiming):
        async def sleep(self, seconds: float) -> None:
            if seconds:
                await anyio.sleep_forever()

    async with line_of(servers, Frozen(), RestartPolicy(initial=5.0)) as line:
        peer = Peer(line, servers.served, Defaults(timeout=0.01))
        await until_lost(line, servers)
        await until_lost(line, servers)
        with pytest.raises(RequestTimeout) as raised:
            await peer.call("m")
        assert not raised.value.sent


# -- processes --------------------------------------------------------------------------------------------------------

FAKE = """
import json, os, pathlib, signal, sys, time

here = pathlib.Path(sys.argv[1])
lives = int(here.read_text()) + 1 if here.exists() else 1
here.write_text(str(lives))

def read():
    length = None
    while (line := sys.stdin.buffer.readline()).strip():
        length = int(line.removeprefix(b"Content-Length: "))
    return None if length is None else json.loads(sys.stdin.buffer.read(length))

def write(message):
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\\r\\n\\r\\n" % len(body) + body)
    sys.stdout.buffer.flush()

while request := read():
    match request["method"]:
        case "services/list":
            write({"id": request["id"], "result": [
                {"name": "q/flaky", "kind": "query"}, {"name": "m/flaky", "kind": "mutation"},
            ]})
        case "q/flaky" | "m/flaky" | "flaky":
            with here.with_suffix(".ran").open("a") as ran:
                ran.write(request["method"] + "\\n")
            if lives == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            write({"id": request["id"], "result": lives})
        case "lives":
            write({"id": request["id"], "result": lives})
        case "stream":
            for seq in (1, 2, 3):
                params = {"id": request["id"], "seq": seq, "value": seq}
                write({"method": "stream/event", "params": params})
            os._exit(4)
        case "die":
            os._exit(3)
"""


@pytest.fixture
def fake(tmp_path: Path) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", FAKE, str(tmp_path / "lives")]


QUICK = RestartPolicy(limit=3, initial=0.0)


class Log:
    def __init__(self) -> None:
        self.attempts: list[Attempt] = []

    def on_attempt(self, attempt: Attempt) -> None:
        self.attempts.append(attempt)


@pytest.mark.anyio
async def test_a_query_is_made_again_on_a_new_process(fake: list[str], tmp_path: Path) -> None:
    log = Log()
    with anyio.fail_after(DEADLINE_SECONDS):
        async with connect(fake, retry=RetryPolicy(initial=0.0, hooks=(log,)), restart=QUICK) as peer:
            assert await peer.call("q/flaky") == 2
    assert (tmp_path / "lives.ran").read_text().split() == ["q/flaky"] * 2
    assert [type(attempt.error) for attempt in log.attempts] == [ConnectionFailed, type(None)]


@pytest.mark.anyio
@pytest.mark.parametrize("method", ["m/flaky", "flaky"])
async def test_a_mutation_that_may_have_run_is_not_made_again(fake: list[str], tmp_path: Path, method: str) -> None:
    with anyio.fail_after(DEADLINE_SECONDS):
        async with connect(fake, retry=RetryPolicy(initial=0.0), restart=QUICK) as peer:
            with pytest.raises(ConnectionFailed) as raised:
                await peer.call(method)
            assert (raised.value.sent, raised.value.loss.status) == (True, -signal.SIGKILL)
            assert await peer.call("lives") == 2
    assert (tmp_path / "lives.ran").read_text().split() == [method]


@pytest.mark.anyio
async def test_a_mutation_that_does_no_harm_twice_is_made_again(fake: list[str], tmp_path: Path) -> None:
    with anyio.fail_after(DEADLINE_SECONDS):
        async with connect(fake, retry=RetryPolicy(initial=0.0), restart=QUICK) as peer:
            assert await peer.call("m/flaky", idempotent=True) == 2
    assert (tmp_path / "lives.ran").read_text().split() == ["m/flaky"] * 2


@pytest.mark.anyio
async def test_many_queries_in_flight_survive_the_death_of_their_server(fake: list[str]) -> None:
    results: list[int] = []
    with anyio.fail_after(DEADLINE_SECONDS):
        async with connect(fake, retry=RetryPolicy(initial=0.0), restart=QUICK) as peer:

            async def ask() -> None:
                results.append(await peer.call("q/flaky"))

            async with anyio.create_task_group() as tasks:
                for _ in range(50):
                    tasks.start_soon(ask)
    assert results == [2] * 50


@pytest.mark.anyio
async def test_a_stream_is_not_resumed_and_says_where_it_was_cut(fake: list[str]) -> None:
    events: list[int] = []
    with anyio.fail_after(DEADLINE_SECONDS):
        async with connect(fake, retry=RetryPolicy(initial=0.0), restart=QUICK) as peer:
            with pytest.raises(ConnectionFailed) as raised:
                async for event in peer.subscribe("stream", type=int):
                    events.append(event)  # noqa: PERF401 - the loop raises
            assert (events, raised.value.last_seq, raised.value.loss.status) == ([1, 2, 3], 3, 4)
            assert await peer.call("lives") == 2
            assert await anext(peer.subscribe("stream", type=int)) == 1


@pytest.mark.anyio
async def test_a_process_that_keeps_dying_is_given_up(fake: list[str]) -> None:
    ends: list[bool] = []
    with anyio.fail_after(DEADLINE_SECONDS):
        async with connect(fake, restart=QUICK) as peer:
            for _ in range(6):
                with pytest.raises(ConnectionFailed) as raised:
                    await peer.call("die")
                ends.append(raised.value.loss.gave_up)
            with pytest.raises(ConnectionFailed):
                await peer.notify("die")
    assert ends == [False, False, False, False, True, True]


@pytest.mark.anyio
async def test_without_a_restart_policy_the_end_is_final(fake: list[str]) -> None:
    with anyio.fail_after(DEADLINE_SECONDS):
        async with connect(fake, retry=RetryPolicy(initial=0.0)) as peer:
            with pytest.raises(ConnectionFailed):
                await peer.call("die", idempotent=True)
            with pytest.raises(ConnectionFailed) as raised:
                await peer.call("lives", idempotent=True)
            assert (raised.value.sent, raised.value.loss.status) == (False, 3)


@pytest.mark.anyio
@pytest.mark.parametrize("command", [["/no/such/program"], [os.devnull]])
async def test_what_cannot_be_run_at_all_fails_at_the_start(command: list[str]) -> None:
    with pytest.raises(ConnectionFailed):
        async with connect(command, restart=QUICK):
            pass


@pytest.mark.anyio
async def test_what_the_block_raises_leaves_it_unwrapped(fake: list[str]) -> None:
    with pytest.raises(KeyError):
        async with connect(fake, restart=QUICK):
            raise KeyError
