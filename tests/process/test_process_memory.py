"""What clients make the daemon hold stays within `max-memory`, and what does not fit is refused, never lost."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.wire import request

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

Spawn = Callable[..., Any]

MIB = 1 << 20
BUDGET = 32 * MIB
ALLOWED_GROWTH = 3 * BUDGET
"""The budget counts what is held; the interpreter, and the copies that are made on the way, come on top."""

HELD = """\
from collections.abc import AsyncIterator
from typing import Any

import anyio
from discreet import Service

held = Service("held")

@held.subscription()
async def events(count: int, size: int) -> AsyncIterator[str]:
    for _ in range(count):
        yield "e" * size

@held.subscription()
async def idle() -> AsyncIterator[int]:
    yield 1
    await anyio.sleep_forever()

@held.query()
async def result(size: int) -> str:
    await anyio.sleep(0)
    return "r" * size

@held.query()
def length(value: Any) -> int:
    return len(value)

@held.query(timeout=None)
async def keep(value: Any) -> int:
    await anyio.sleep(0.05)
    return len(value)
"""


@pytest.fixture
def held(spawn: Spawn, app_directory: Path) -> Any:
    (app_directory / "held.py").write_text(HELD)
    child = spawn("serve", "./held.py:held", "--max-memory", str(BUDGET))
    child.call("first", "version")
    return child


def rss(pid: int, field: str = "VmRSS") -> int:
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(field))


def outcome(message: dict[str, Any]) -> str:
    return "result" if "result" in message else message["error"]["data"]["code"]


def test_events_of_many_streams_that_nobody_reads_are_bounded_and_none_of_a_stream_is_left_out(held: Any) -> None:
    before = rss(held.process.pid)
    for number in range(80):
        held.write(request(number, "held/events", {"count": 3, "size": MIB}))
    held.write(request("after", "version"))
    events: dict[int, int] = dict.fromkeys(range(80), 0)
    done = {}
    while len(done) < 81:
        message = held.read()
        if message.get("method") == "stream/event":
            events[message["params"]["id"]] += 1
            assert message["params"]["seq"] == events[message["params"]["id"]]
        else:
            done[message["id"]] = outcome(message)
    assert rss(held.process.pid, "VmHWM") - before < 4 * BUDGET  # 240 MiB are asked for
    assert done.pop("after") == "result"
    assert set(done.values()) <= {"result", "OVERLOADED"}
    assert all(events[number] == 3 for number, how in done.items() if how == "result")
    assert sum(how == "result" for how in done.values()) >= BUDGET // (2 * MIB)
    assert held.end() == 0


def test_idle_streams_do_not_keep_the_params_that_they_came_with(held: Any) -> None:
    before = rss(held.process.pid)
    for number in range(14):
        held.write(request(number, "held/idle", {"_meta": {"pad": "x" * 9 * MIB}}))
        assert held.read()["params"] == {"id": number, "seq": 1, "value": 1}
    assert rss(held.process.pid) - before < ALLOWED_GROWTH
    assert held.call("after", "held/length", {"value": "y" * 9 * MIB})["result"] == 9 * MIB


def test_large_results_that_nobody_reads_are_bounded_and_each_request_is_answered(held: Any) -> None:
    before = rss(held.process.pid)
    for number in range(18):
        held.write(request(number, "held/result", {"size": 9 * MIB}))
    answers = [held.read() for _ in range(18)]
    assert rss(held.process.pid, "VmHWM") - before < ALLOWED_GROWTH
    assert {message["id"] for message in answers} == set(range(18))
    assert {outcome(message) for message in answers} <= {"result", "OVERLOADED"}
    assert "result" in {outcome(message) for message in answers}


def test_params_that_are_much_larger_in_decoded_form_run_a_few_at_a_time(held: Any) -> None:
    before = rss(held.process.pid)
    nested = b"[" + b"[]," * 300_000 + b"[]]"
    for number in range(24):
        body = b'{"jsonrpc":"2.0","id":%d,"method":"held/keep","params":{"value":%b}}' % (number, nested)
        held.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
    answers = [held.read() for _ in range(24)]
    assert rss(held.process.pid, "VmHWM") - before < ALLOWED_GROWTH + 2 * MIB * 24
    assert {message["id"] for message in answers} == set(range(24))
    assert {outcome(message) for message in answers} <= {"result", "OVERLOADED"}


def test_params_that_never_fit_are_refused_and_the_next_ones_run(held: Any) -> None:
    nested = b"[" + b"[]," * 2_000_000 + b"[]]"
    body = b'{"jsonrpc":"2.0","id":1,"method":"held/length","params":{"value":%b}}' % nested
    held.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
    assert outcome(held.read()) == "OVERLOADED"
    assert held.call(2, "held/length", {"value": "abc"})["result"] == 3


def test_large_messages_of_all_sizes_leave_no_memory_behind(held: Any) -> None:
    sizes = [70_000, 1_500_000, 300_000, 2_000_000, 130_000, 900_000]

    def load(rounds: int) -> int:
        for number in range(rounds):
            size = sizes[number % len(sizes)]
            assert held.call(number, "held/length", {"value": "x" * size})["result"] == size
        return rss(held.process.pid)

    settled = load(60)
    assert load(300) - settled < 16 * MIB
    assert held.end() == 0
