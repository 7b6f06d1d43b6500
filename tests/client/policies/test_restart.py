"""Servers that die and are restarted: how often, by which call, and what is called again."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.client import (
    PLAIN,
    ConnectionFailed,
    ConnectionLoss,
    Peer,
    RequestTimeout,
    RestartPolicy,
    RetryPolicy,
    connect,
)
from discreet.client.connection import Connection, open_connection
from discreet.client.connector import RestartHistory, RestartingConnector
from discreet.client.incoming import Handlers
from discreet.client.peer import CallDefaults
from discreet.client.task_group import background_tasks
from discreet.framing.transports.memory import MemoryTransport, memory_pair
from support.attempts import Log
from support.hostile import hostile
from support.timing import FakeTiming
from support.waits import DEADLINE_SECONDS

pytestmark = pytest.mark.anyio

# -- how often --------------------------------------------------------------------------------------------------------


def test_the_first_restart_is_immediate_and_each_further_one_waits_twice_as_long() -> None:
    restarts, pauses = RestartHistory(RestartPolicy(limit=7, initial=0.5, cap=4.0)), []
    for _ in range(8):
        pauses.append(restarts.delay(0.0))
        restarts.add(0.0)
    assert pauses == [0.0, 0.5, 1.0, 2.0, 4.0, 4.0, 4.0, None]


def test_old_restarts_no_longer_count() -> None:
    restarts = RestartHistory(RestartPolicy(limit=2, within=60.0, initial=0.5))
    restarts.add(0.0)
    restarts.add(30.0)
    assert [restarts.delay(now) for now in (59.0, 60.0, 89.0, 90.0)] == [None, 0.5, 0.5, 0.0]


@given(
    limit=st.integers(0, 5),
    within=st.floats(0.1, 100),
    gaps=st.lists(st.floats(0, 100), max_size=40),
)
def test_no_period_has_more_restarts_than_the_limit(limit: int, within: float, gaps: list[float]) -> None:
    restarts, now, done = RestartHistory(RestartPolicy(limit=limit, within=within)), 0.0, list[float]()
    for gap in gaps:
        now += gap
        if restarts.delay(now) is not None:
            restarts.add(now)
            done.append(now)
    assert all(len([at for at in done if end - within < at <= end]) <= limit for end in done)


# -- a connector with fake servers -----------------------------------------------------------------------------------


class Servers:
    """Starts servers in memory, and counts those that run."""

    def __init__(self) -> None:
        self.handlers = Handlers(PLAIN)
        self.ends: list[MemoryTransport] = []
        self.living = 0
        self.broken = False

    @asynccontextmanager
    async def start(self) -> AsyncGenerator[Connection]:
        if self.broken:
            raise ConnectionFailed(ConnectionLoss("no such program"), sent=False)
        ours, theirs = memory_pair()
        self.ends.append(theirs)
        self.living += 1
        assert self.living == 1, "two servers at once"
        try:
            async with open_connection(
                ours, self.handlers, framing="content-length", explain=self._explain
            ) as connection:
                yield connection
        finally:
            await anyio.lowlevel.cancel_shielded_checkpoint()
            self.living -= 1

    async def _explain(self) -> ConnectionLoss:
        return ConnectionLoss(f"server {len(self.ends)} died", status=3)

    def kill(self) -> None:
        self.ends[-1].close()


@pytest.fixture
def servers() -> Servers:
    return Servers()


@asynccontextmanager
async def connector_of(
    servers: Servers, timing: FakeTiming, policy: RestartPolicy
) -> AsyncGenerator[RestartingConnector[Connection]]:
    with anyio.fail_after(DEADLINE_SECONDS):
        async with background_tasks() as tasks:
            connector = RestartingConnector(servers.start, policy, tasks=tasks, timing=timing)
            await connector.connection()
            yield connector
            connector.close()


async def kill_server(connector: RestartingConnector[Connection], servers: Servers) -> None:
    connection = await connector.connection()
    servers.kill()
    await connection.wait_lost()


async def test_a_dead_server_is_started_again_by_the_next_call_and_not_before(servers: Servers) -> None:
    async with connector_of(servers, FakeTiming(), RestartPolicy()) as connector:
        first = await connector.connection()
        assert await connector.connection() is first
        await kill_server(connector, servers)
        await anyio.wait_all_tasks_blocked()
        assert (len(servers.ends), servers.living) == (1, 0)
        second = await connector.connection()
        assert second is not first
        assert second.usable
    assert servers.living == 0


async def test_many_calls_at_once_share_one_restart(servers: Servers) -> None:
    found: list[Connection] = []

    async with connector_of(servers, FakeTiming(), RestartPolicy()) as connector:
        await kill_server(connector, servers)

        async def need() -> None:
            found.append(await connector.connection())

        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(need)
    assert (len(found), len(set(found)), len(servers.ends)) == (20, 1, 2)


async def test_after_giving_up_every_call_fails_at_once(servers: Servers) -> None:
    timing = FakeTiming()
    async with connector_of(servers, timing, RestartPolicy(limit=3, initial=1.0, cap=60.0)) as connector:
        for _ in range(4):
            assert not connector.closed
            await kill_server(connector, servers)
        for _ in range(2):
            with pytest.raises(ConnectionFailed) as raised:
                await connector.connection()
            loss = raised.value.loss
            assert (loss.gave_up, loss.status, raised.value.sent) == (True, 3, False)
            assert loss.reason.startswith("gave up")
        assert connector.closed
    assert (len(servers.ends), timing.slept) == (4, [0.0, 1.0, 2.0])


async def test_the_delay_counts_from_the_death_not_from_the_call(servers: Servers) -> None:
    timing = FakeTiming()
    async with connector_of(servers, timing, RestartPolicy(initial=5.0, within=1000.0)) as connector:
        await kill_server(connector, servers)
        await kill_server(connector, servers)
        await anyio.wait_all_tasks_blocked()
        timing.time += 3.0
        await connector.connection()
    assert timing.slept == [0.0, 2.0]


async def test_a_failed_restart_counts_and_fails_the_calls_that_waited_for_it(servers: Servers) -> None:
    async with connector_of(servers, FakeTiming(), RestartPolicy(limit=2)) as connector:
        await kill_server(connector, servers)
        servers.broken = True
        gave_up = []
        for _ in range(3):
            with pytest.raises(ConnectionFailed) as raised:
                await connector.connection()
            gave_up.append(raised.value.loss.gave_up)
        assert gave_up == [False, False, True]


async def test_cancelling_a_call_that_waits_for_a_restart_leaves_it_to_the_next_call(servers: Servers) -> None:
    async with connector_of(servers, FakeTiming(), RestartPolicy()) as connector:
        await kill_server(connector, servers)
        with anyio.CancelScope() as scope:
            scope.cancel()
            await connector.connection()
        assert scope.cancelled_caught
        assert (await connector.connection()).usable


async def test_nothing_is_started_after_the_block(servers: Servers) -> None:
    raised: list[ConnectionFailed] = []

    async def need(connector: RestartingConnector[Connection]) -> None:
        try:
            await connector.connection()
        except ConnectionFailed as exc:
            raised.append(exc)

    async with anyio.create_task_group() as tasks:
        async with connector_of(servers, FakeTiming(), RestartPolicy()) as connector:
            await kill_server(connector, servers)
            tasks.start_soon(need, connector)
        with pytest.raises(ConnectionFailed):
            await connector.connection()
    assert (servers.living, len(servers.ends), [exc.sent for exc in raised]) == (0, 1, [False])


async def test_a_handler_that_raises_connection_failed_does_not_end_the_connection(servers: Servers) -> None:
    async def broken(_: object) -> None:
        raise ConnectionFailed(ConnectionLoss("another connection"))

    async with connector_of(servers, FakeTiming(), RestartPolicy()) as connector:
        Peer(connector, servers.handlers).on_request("ask", broken)
        body = b'{"jsonrpc":"2.0","id":1,"method":"ask"}'
        await servers.ends[-1].send(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        assert b"-32603" in await servers.ends[-1].receive()
        assert (await connector.connection()).usable


async def test_handlers_stay_registered_over_a_restart(servers: Servers) -> None:
    heard = anyio.Event()
    async with connector_of(servers, FakeTiming(), RestartPolicy()) as connector:
        Peer(connector, servers.handlers).on_notification("told", lambda _: heard.set())
        await kill_server(connector, servers)
        await connector.connection()
        body = b'{"jsonrpc":"2.0","method":"told"}'
        await servers.ends[-1].send(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        with anyio.move_on_after(DEADLINE_SECONDS):
            await heard.wait()
        assert heard.is_set()


async def test_the_wait_for_a_restart_is_part_of_the_calls_timeout(servers: Servers) -> None:
    class Frozen(FakeTiming):
        async def sleep(self, seconds: float) -> None:
            if seconds:
                await anyio.sleep_forever()

    async with connector_of(servers, Frozen(), RestartPolicy(initial=5.0)) as connector:
        peer = Peer(connector, servers.handlers, CallDefaults(timeout=0.01))
        await kill_server(connector, servers)
        await kill_server(connector, servers)
        with pytest.raises(RequestTimeout) as raised:
            await peer.call("m")
        assert not raised.value.sent


# -- processes that die: which calls are made again, and which never --

FAKE = """
import pathlib

here = pathlib.Path(sys.argv[1])
lives = int(here.read_text()) + 1 if here.exists() else 1
here.write_text(str(lives))

while request := read():
    match request["method"]:
        case "services/list":
            reply(request, [{"name": "q/flaky", "kind": "query"}, {"name": "m/flaky", "kind": "mutation"}])
        case "q/flaky" | "m/flaky" | "flaky":
            with here.with_suffix(".ran").open("a") as ran:
                ran.write(request["method"] + "\\n")
            if lives == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            reply(request, lives)
        case "lives":
            reply(request, lives)
        case "services/subscribe":
            for seq in (1, 2, 3):
                params = {"id": request["id"], "seq": seq, "value": seq}
                write({"jsonrpc": "2.0", "method": "stream/event", "params": params})
            os._exit(4)
        case "die":
            os._exit(3)
"""


@pytest.fixture
def fake(tmp_path: Path) -> list[str]:
    return hostile(FAKE, str(tmp_path / "lives"))


QUICK = RestartPolicy(limit=3, initial=0.0)


async def test_a_query_is_retried_on_a_new_process(deadline: None, fake: list[str], tmp_path: Path) -> None:
    log = Log()
    async with connect(fake, retry=RetryPolicy(initial=0.0, hooks=(log,)), restart=QUICK) as peer:
        assert await peer.call("q/flaky") == 2
    assert (tmp_path / "lives.ran").read_text().split() == ["q/flaky"] * 2
    assert [type(attempt.error) for attempt in log.attempts] == [ConnectionFailed, type(None)]


async def test_many_queries_in_flight_survive_the_death_of_their_server(deadline: None, fake: list[str]) -> None:
    results: list[int] = []
    async with connect(fake, retry=RetryPolicy(initial=0.0), restart=QUICK) as peer:

        async def ask() -> None:
            results.append(await peer.call("q/flaky"))

        async with anyio.create_task_group() as tasks:
            for _ in range(50):
                tasks.start_soon(ask)
    assert results == [2] * 50


async def test_a_stream_is_not_resumed_and_says_where_it_was_cut_off(deadline: None, fake: list[str]) -> None:
    events: list[int] = []
    async with connect(fake, retry=RetryPolicy(initial=0.0), restart=QUICK) as peer:
        with pytest.raises(ConnectionFailed) as raised:
            async for event in peer.subscribe("stream", type=int):
                events.append(event)  # noqa: PERF401 - the loop raises
        assert (events, raised.value.last_seq, raised.value.loss.status) == ([1, 2, 3], 3, 4)
        assert await peer.call("lives") == 2
        assert await anext(peer.subscribe("stream", type=int)) == 1
