"""Processes that die and are restarted: which calls are made again, and which never."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from discreet.client import ConnectionFailed, RestartPolicy, RetryPolicy, connect
from support.attempts import Log
from support.hostile import hostile

pytestmark = pytest.mark.anyio

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
