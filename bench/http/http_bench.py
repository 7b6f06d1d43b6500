"""Measures the HTTP gateway beside a2a-sdk's servers on uvicorn, all in one run.

`run` sets it up; bench/README.md says what it measures.

http_bench.py [--json FILE] [--rounds N] [--uvloop] [--quick] [--only discreet] [--kind send]
    [--stores memory,sqlite,postgresql,redis]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeAlias

from agents_requests import Requests
from load import Load, post, send
from servers import Server, free_port, listens, postgres, redis
from stdio_machine import cpu_clock, wait_quiet

HERE = Path(__file__).parent
EVENTS = 100
SERVERS = {"postgresql": postgres, "redis": redis}
DISCREET = "-P -m discreet serve ./agents_app.py:agent --no-stdio --backend asyncio --log-level error"


class Contestant(NamedTuple):
    """`variable` names its interpreter. `version` is that of A2A."""

    name: str
    variable: str
    version: str
    script: str
    stores: tuple[str, ...] = ("memory", "sqlite")


CONTESTANTS = (
    Contestant("discreet, 1.0", "DISCREET_PY", "1.0", "", ("memory", "sqlite", "postgresql", "redis")),
    Contestant("a2a-sdk 1", "DISCREET_A2A_V1", "1.0", "server_v1.py", ("memory", "sqlite", "postgresql")),
    Contestant("discreet, 0.3", "DISCREET_PY", "0.3", ""),
    Contestant("a2a-sdk 0.3", "DISCREET_A2A_V03", "0.3", "server_v03.py"),
)
PAIRS = (("discreet, 1.0", "a2a-sdk 1"), ("discreet, 0.3", "a2a-sdk 0.3"))


Found: TypeAlias = dict[str, dict[str, list[dict[str, float]]]]


class Scenario(NamedTuple):
    store: str
    kind: str
    connections: int
    count: int
    slow_count: int
    """For a2a-sdk, which takes longer."""

    @property
    def title(self) -> str:
        what = {"stream": f"stream of {EVENTS} events"}.get(self.kind, self.kind)
        return f"{what}, {self.store}, {self.connections} at a time"


SCENARIOS = (
    Scenario("memory", "send", 1, 1500, 500),
    Scenario("memory", "send", 32, 4000, 1000),
    Scenario("memory", "get", 1, 2000, 1000),
    Scenario("memory", "get", 32, 6000, 2000),
    Scenario("memory", "stream", 1, 60, 15),
    Scenario("memory", "stream", 8, 160, 40),
    Scenario("sqlite", "send", 32, 2000, 200),
    Scenario("sqlite", "get", 32, 3000, 500),
    *(
        scenario
        for store in SERVERS
        for scenario in (
            Scenario(store, "send", 1, 300, 80),
            Scenario(store, "send", 32, 2000, 160),
            Scenario(store, "get", 1, 1000, 400),
            Scenario(store, "get", 32, 3000, 800),
            Scenario(store, "list", 1, 100, 40),
            Scenario(store, "list", 32, 320, 64),
            Scenario(store, "stream", 1, 20, 3),
            Scenario(store, "stream", 8, 80, 8),
        )
    ),
)
FIGURES = ("per_s", "p50_ms", "p99_ms", "cpu_ms", "store_cpu_ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--json", metavar="FILE", help="write the figures of every round there")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--uvloop", action="store_true", help="all servers on uvloop instead of asyncio's loop")
    parser.add_argument("--only", default="", help="contestants whose names begin so")
    parser.add_argument("--quick", action="store_true", help="a tenth of everything, one round")
    parser.add_argument("--stores", default="memory,sqlite", help="of memory, sqlite, postgresql, redis")
    parser.add_argument("--kind", default="", help="one of send, get, stream, list; by default all")
    args = parser.parse_args()
    pythons = _pythons()
    taking_part = [each for each in CONTESTANTS if each.variable in pythons and each.name.startswith(args.only)]
    with ExitStack() as stack:
        stores = {
            name: stack.enter_context(SERVERS[name]()) if name in SERVERS else None for name in args.stores.split(",")
        }
        found = _rounds(taking_part, pythons, stores, args)
    ceiling = _ceiling()
    if args.json:
        Path(args.json).write_text(json.dumps({"ceiling": ceiling, "figures": found}, indent=1), encoding="utf-8")
    print("\n".join(_table(found, ceiling)))


def _rounds(
    contestants: list[Contestant], pythons: dict[str, str], stores: dict[str, Server | None], args: argparse.Namespace
) -> Found:
    """The figures of every round: by scenario, by contestant. Contestants take turns, another first in each round."""
    found: Found = defaultdict(lambda: defaultdict(list))
    for number in range(1 if args.quick else args.rounds):
        for store, server in stores.items():
            names = [each for each in contestants if store in each.stores]
            turn = number % len(names)
            for contestant in names[turn:] + names[:turn]:
                with _server(contestant, pythons[contestant.variable], _address(store, server), args) as (port, pid):
                    clocks = {"cpu_ms": partial(cpu_clock, [pid])}
                    if server is not None:
                        clocks["store_cpu_ms"] = server.cpu
                    for scenario in SCENARIOS:
                        if scenario.store == store and args.kind in ("", scenario.kind):
                            figures = asyncio.run(_measured(contestant, scenario, port, clocks, quick=args.quick))
                            found[scenario.title][contestant.name].append(figures)
                            _say(f"{contestant.name:14} {scenario.title:40} {figures['per_s']:8,.0f}/s")
    return found


def _address(store: str, server: Server | None) -> str:
    """Of a store that is empty."""
    return store if server is None else server.new_database()


def _pythons() -> dict[str, str]:
    pythons = {"DISCREET_PY": os.environ.get("DISCREET_PY", sys.executable)}
    for variable in ("DISCREET_A2A_V1", "DISCREET_A2A_V03"):
        if variable in os.environ:
            pythons[variable] = os.environ[variable]
        else:
            _say(f"{variable} is not set: its server is left out")
    return pythons


@contextmanager
def _server(contestant: Contestant, python: str, store: str, args: argparse.Namespace) -> Iterator[tuple[int, int]]:
    """The port and the process id of a server that listens."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DISK")) as folder:
        port, place = free_port(), f"sqlite:{folder}/tasks.db" if store == "sqlite" else store
        loop = "uvloop" if args.uvloop else "asyncio"
        if contestant.script:
            command = [python, str(HERE / contestant.script), str(port), place, loop]
        else:
            command = [python, *DISCREET.split(), "--http", f"127.0.0.1:{port}", "--store", place]
        with _process(command, port) as pid:
            yield port, pid


@contextmanager
def _process(command: list[str], port: int) -> Iterator[int]:
    process = subprocess.Popen(command, cwd=HERE.parent, stdin=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 30
        while not listens(port):
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"{command}: it does not listen")
            time.sleep(0.05)
        yield process.pid
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


async def _measured(
    contestant: Contestant, scenario: Scenario, port: int, clocks: dict[str, Callable[[], float]], *, quick: bool
) -> dict[str, float]:
    count = scenario.slow_count if contestant.script else scenario.count
    count = max(scenario.connections, count // 10) if quick else count
    requests = Requests(contestant.version)
    requests.number = time.monotonic_ns()  # ids of messages, which the server has not seen yet
    await send(port, await _texts(scenario, requests, port, scenario.connections * 2), connections=scenario.connections)
    texts = await _texts(scenario, requests, port, count)
    wait_quiet(2)
    before = {name: clock() for name, clock in clocks.items()}
    load = await send(port, texts, connections=scenario.connections)
    cpu = {name: clock() - before[name] for name, clock in clocks.items()}
    for body in load.bodies:
        assert scenario.kind != "stream" or body.count(b"data: ") >= EVENTS + 1, body[-600:]
    return _figures(load, cpu)


async def _texts(scenario: Scenario, requests: Requests, port: int, count: int) -> list[bytes]:
    def posted(body: bytes) -> bytes:
        return post(port, requests.version, body)

    match scenario.kind:
        case "send":
            return [posted(requests.send("do")) for _ in range(count)]
        case "list":
            return [posted(requests.list()) for _ in range(count)]
        case "get":
            load = await send(port, [posted(requests.send("do"))], connections=1)
            task = json.loads(load.bodies[0].partition(b"\r\n\r\n")[2])["result"]
            task_id = task.get("task", task)["id"]
            return [posted(requests.get(task_id)) for _ in range(count)]
        case _:
            return [posted(requests.send(f"stream {EVENTS} 64", stream=True)) for _ in range(count)]


def _figures(load: Load, cpu: dict[str, float]) -> dict[str, float]:
    count = len(load.latencies)
    cuts = statistics.quantiles(load.latencies, n=100) if count > 1 else load.latencies * 99
    return {
        "per_s": count / load.seconds,
        "p50_ms": cuts[49] * 1e3,
        "p99_ms": cuts[98] * 1e3,
        **{name: seconds / count * 1e3 for name, seconds in cpu.items()},
    }


def _ceiling() -> float:
    """Requests a second of the load generator against a server that does nothing."""
    port = free_port()
    with _process([sys.executable, str(HERE / "server_raw.py"), str(port)], port):
        texts = [post(port, "1.0", Requests("1.0").get("none"))] * 20_000
        return 20_000 / asyncio.run(send(port, texts, connections=32)).seconds


def _table(found: Found, ceiling: float) -> list[str]:
    machine = f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}, CPython {platform.python_version()}"
    pairs = [pair for pair in PAIRS if any(name in by_name for by_name in found.values() for name in pair)]
    lines = [
        f"{machine}; the load generator itself: {ceiling:,.0f} requests/s",
        "",
        "| scenario | figure | " + " | ".join(f"{ours} | {theirs} | times" for ours, theirs in pairs) + " |",
        "| --- | --- |" + " --- |" * (3 * len(pairs)),
    ]
    for title, by_name in found.items():
        figures = [
            figure for figure in FIGURES if all(figure in each for rounds in by_name.values() for each in rounds)
        ]
        medians = {
            name: {figure: statistics.median(round_[figure] for round_ in rounds) for figure in figures}
            for name, rounds in by_name.items()
        }
        for figure in figures:
            cells = [cell for pair in pairs for cell in _cells(medians, pair, figure)]
            lines.append(f"| {title} | {figure.replace('_', ' ')} | {' | '.join(cells)} |")
    return lines


def _cells(medians: dict[str, dict[str, float]], pair: tuple[str, str], figure: str) -> tuple[str, str, str]:
    ours, theirs = (medians.get(name, {}).get(figure) for name in pair)
    ratio = "–"
    if ours and theirs:
        ratio = f"{ours / theirs if figure == 'per_s' else theirs / ours:.2f}"
    return _number(ours), _number(theirs), ratio


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
