"""Measures an operation by HTTP beside the same route of FastAPI and of Starlette, all on uvicorn, in turns of one run.

operations_bench.py [--rounds N] [--count N] [--json FILE]
DISCREET_PY and DISCREET_FASTAPI name interpreters that have discreet[http], and fastapi, uvicorn and httptools.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from http_bench import _figures, _number, _process
from load import request, send
from servers import free_port
from stdio_machine import cpu_clock

HERE = Path(__file__).parent
PATHS = {"inline": "/operations/bench/echo_inline"}
PATH = "/operations/bench/echo"
BODY = json.dumps({"text": "hello, world", "count": 7, "tags": ["a", "b", "c"]}).encode()
DISCREET = "-P -m discreet serve ./http/operations_app.py:service --no-stdio --http-operations --log-level error --http"
NAMES = ("inline", "async def", "FastAPI", "Starlette")
"""The first two are handlers of discreet, which one daemon has."""
OURS, THEIRS = NAMES[:2], NAMES[2:]
FIGURES = ("per_s", "p50_ms", "p99_ms", "cpu_ms")
CONNECTIONS = (1, 32)


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--count", type=int, default=3000)
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    ours = os.environ.get("DISCREET_PY", sys.executable)
    theirs = os.environ["DISCREET_FASTAPI"]
    found: dict[int, dict[str, list[dict[str, float]]]] = {each: defaultdict(list) for each in CONNECTIONS}
    with ExitStack() as stack:
        port = free_port()
        ours_served = port, stack.enter_context(_process([ours, *DISCREET.split(), f"127.0.0.1:{port}"], port))
        servers = dict.fromkeys(OURS, ours_served)
        for name in THEIRS:
            port = free_port()
            script = str(HERE / f"server_{name.lower()}.py")
            servers[name] = port, stack.enter_context(_process([theirs, script, str(port)], port))
        for number in range(args.rounds + 1):  # the first is for warming up
            for connections in CONNECTIONS:
                for turn in range(len(NAMES)):
                    name = NAMES[(number + turn) % len(NAMES)]
                    port, pid = servers[name]
                    texts = [request(port, PATHS.get(name, PATH), BODY)] * args.count
                    cpu = cpu_clock([pid])
                    load = asyncio.run(send(port, texts, connections=connections, expected=b'"hello, world"'))
                    cpu = cpu_clock([pid]) - cpu
                    if number:
                        found[connections][name].append(_figures(load, {"cpu_ms": cpu}))
    if args.json:
        Path(args.json).write_text(json.dumps(found, indent=1), encoding="utf-8")
    print("\n".join(_table(found)))


def _table(found: dict[int, dict[str, list[dict[str, float]]]]) -> Iterator[str]:
    yield f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}, CPython {platform.python_version()}"
    yield ""
    yield "| at a time | figure | inline | async def | FastAPI | times | Starlette | times |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    for connections, by_name in found.items():
        for figure in FIGURES:
            medians = {name: statistics.median(each[figure] for each in rounds) for name, rounds in by_name.items()}
            cells = [_number(medians[name]) for name in OURS]
            for name in THEIRS:
                ratios = (medians[each] / medians[name] for each in OURS)
                better = (ratio if figure == "per_s" else 1 / ratio for ratio in ratios)
                cells += [_number(medians[name]), " ".join(f"{each:.2f}" for each in better)]
            yield f"| {connections} | {figure.replace('_per_s', '/s').replace('_', ' ')} | {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
