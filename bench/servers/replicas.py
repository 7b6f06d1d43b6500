"""What it costs one daemon that others share its store, and how soon they tell their clients of what it does.

replicas.py [--store postgresql] [--rounds N] [--json FILE]

bench/README.md says what is measured.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from agents_requests import Requests, task_of
from daemons import Daemon, daemon
from load import Load, post, send
from servers import Server, postgres, redis

SENDS = 1500
WARM = 200
CONNECTIONS = 32
REPLICAS = (1, 2, 4)
FOLLOWERS = (0, 10, 100)
TICKS, TICK_MS = 100, 20

Figures = dict[str, float]


# -- one works -------------------------------------------------------------------------------------------------


def requests() -> Requests:
    made = Requests("1.0")
    made.number = time.monotonic_ns()  # ids of messages, which no daemon has seen yet
    return made


async def _sent(port: int, count: int) -> Load:
    made = requests()
    return await send(port, [post(port, "1.0", made.send("do")) for _ in range(count)], connections=CONNECTIONS)


async def worked(server: Server, daemons: list[Daemon]) -> Figures:
    """Sends to the first daemon."""
    first, *others = daemons
    await _sent(first.port, WARM)
    clocks: dict[str, Callable[[], float]] = {
        "CPU ms, the one that works": first.cpu,
        "CPU ms, the store's server": server.cpu,
        "CPU ms, each other daemon": lambda: sum(each.cpu() for each in others) / max(1, len(others)),
    }
    before = {name: clock() for name, clock in clocks.items()}
    load = await _sent(first.port, SENDS)
    cuts = statistics.quantiles(load.latencies, n=100)
    return {
        "sends a second": SENDS / load.seconds,
        "p50 ms": cuts[49] * 1e3,
        "p99 ms": cuts[98] * 1e3,
        **{name: (clock() - before[name]) / SENDS * 1e3 for name, clock in clocks.items()},
    }


# -- others follow ---------------------------------------------------------------------------------------------


class Follower(asyncio.Protocol):
    """Reads one stream. `delays` are the seconds from when an event was made until it was here."""

    def __init__(self, request: bytes) -> None:
        loop = asyncio.get_running_loop()
        self.begun: asyncio.Future[None] = loop.create_future()
        self.ended: asyncio.Future[None] = loop.create_future()
        self.delays: list[float] = []
        self._request = request
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        now = time.time_ns()
        data = self._rest + data
        *lines, self._rest = data.split(b"\n")
        for line in lines:
            if not line.startswith(b"data:"):
                continue
            if not self.begun.done():  # the task as it is
                self.begun.set_result(None)
            elif b"artifactUpdate" in line:
                self.delays += [(now - int(made)) / 1e9 for made in re.findall(rb"@(\d+)@", line)]
            elif b"TASK_STATE_COMPLETED" in line and not self.ended.done():
                self.ended.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        for future in (self.begun, self.ended):
            if not future.done():
                future.set_exception(ValueError(f"the stream ended: {self._rest[:300]!r}"))


async def follow(port: int, task: str) -> Follower:
    request = post(port, "1.0", requests().subscribe(task))
    loop = asyncio.get_running_loop()
    _, follower = await loop.create_connection(lambda: Follower(request), "127.0.0.1", port)
    follower.ended.add_done_callback(lambda future: future.exception())
    await asyncio.wait_for(follower.begun, 30)
    return follower


async def begun(port: int, text: str) -> str:
    """The id of a task, at once."""
    load = await send(port, [post(port, "1.0", requests().send(text, wait=False))], connections=1)
    return str(task_of(load.bodies[0].partition(b"\r\n\r\n")[2])["id"])


async def ticked(server: Server, daemons: list[Daemon], followers: int) -> Figures:
    """A task of the first daemon has an event every `TICK_MS`; the second one has followers."""
    first, second = daemons
    task = await begun(first.port, f"tick {TICKS} {TICK_MS} {1 + followers * 0.02}")
    here = await follow(first.port, task)
    there = [await follow(second.port, task) for _ in range(followers)]
    clocks = {
        "CPU ms, the one that works": first.cpu,
        "CPU ms, the one with followers": second.cpu,
        "CPU ms, the store's server": server.cpu,
    }
    before = {name: clock() for name, clock in clocks.items()}
    await asyncio.wait_for(asyncio.gather(here.ended, *(each.ended for each in there)), 60)
    cpu = {name: (clock() - before[name]) / TICKS * 1e3 for name, clock in clocks.items()}
    for each in (here, *there):
        assert len(each.delays) == TICKS, f"{len(each.delays)} of {TICKS} events"
        each.transport.abort()
    figures = {f"{name} ms, at the one that works": value for name, value in _cuts(here.delays)}
    if there:
        elsewhere = [delay for each in there for delay in each.delays]
        figures |= {f"{name} ms, elsewhere": value for name, value in _cuts(elsewhere)}
    return figures | cpu


def _cuts(delays: list[float]) -> Iterator[tuple[str, float]]:
    cuts = statistics.quantiles(delays, n=100)
    yield "p50", cuts[49] * 1e3
    yield "p99", cuts[98] * 1e3


async def worked_beside(server: Server, daemons: list[Daemon], followers: int) -> Figures:
    """As `worked`, while the second daemon has followers of other tasks, which nobody changes."""
    first, second = daemons
    tasks = [await begun(first.port, "park") for _ in range(followers)]
    there = [await follow(second.port, task) for task in tasks]
    try:
        return await worked(server, daemons)
    finally:
        for each in there:
            each.transport.abort()


# -- all of it -------------------------------------------------------------------------------------------------


@contextmanager
def replicas(server: Server, count: int) -> Iterator[list[Daemon]]:
    """Daemons on a store of their own."""
    url = server.new_database()
    with ExitStack() as stack:
        yield [stack.enter_context(daemon(url)) for _ in range(count)]


def measure(server: Server, rounds: int) -> dict[str, dict[str, Figures]]:
    """Medians, by table and column."""
    found: dict[str, dict[str, list[Figures]]] = defaultdict(lambda: defaultdict(list))
    for _ in range(rounds):
        for count in REPLICAS:
            with replicas(server, count) as daemons:
                found["one works"][f"{count} daemons"].append(asyncio.run(worked(server, daemons)))
                if count != 2:
                    continue
                for followers in FOLLOWERS:
                    column = f"{followers} followers"
                    beside = asyncio.run(worked_beside(server, daemons, followers))
                    found["followers of other tasks elsewhere"][column].append(beside)
                    ticks = asyncio.run(ticked(server, daemons, followers))
                    found["followers of the task elsewhere"][column].append(ticks)
    return {
        title: {
            column: {name: statistics.median(each[name] for each in rounds_) for name in rounds_[0]}
            for column, rounds_ in by_column.items()
        }
        for title, by_column in found.items()
    }


def table(title: str, found: dict[str, Figures]) -> list[str]:
    rows = dict.fromkeys(name for figures in found.values() for name in figures)
    lines = [f"| {title} | {' | '.join(found)} |", "| --- " * (len(found) + 1) + "|"]
    for row in rows:
        cells = (f"{figures[row]:.3g}" if row in figures else "–" for figures in found.values())
        lines.append(f"| {row} | {' | '.join(cells)} |")
    return [*lines, ""]


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--store", default="postgresql", choices=("postgresql", "redis"))
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    with {"postgresql": postgres, "redis": redis}[args.store]() as server:
        found = measure(server, args.rounds)
    if args.json:
        Path(args.json).write_text(json.dumps(found, indent=1), encoding="utf-8")
    for title, by_column in found.items():
        print("\n".join(table(title, by_column)))


if __name__ == "__main__":
    main()
