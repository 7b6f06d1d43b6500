"""The first calls of imported operations: `python first.py FILE [CALLS]`. Prints JSON: milliseconds of the first call and of
others, each with those of the daemon's CPU.

Each call is the first of its operation. The server is a stub on loopback whose answers fit; each call must give that answer.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from daemons import Daemon, calls_of
from stub import Stub


def first_calls(path: Path, most: int) -> dict[str, Any]:
    calls = list(calls_of(path, most))
    firsts: list[tuple[float, float]] = []
    others: list[tuple[float, float]] = []
    again: list[tuple[float, float]] = []
    wrong: list[Any] = []
    with TemporaryDirectory() as folder, Stub() as stub:
        for run in range(3):
            with Daemon(Path(folder), Path(folder), path, stub.url) as daemon:
                daemon.started()
                for place, call in enumerate(calls[run:] + calls[:run]):
                    stub.answer = call.answer
                    took, answer = timed(daemon, call.name, call.params)
                    (others if place else firsts).append(took)
                    if "error" in answer and run == 0:
                        wrong.append((call.name, call.params, answer["error"]))
                again += [timed(daemon, call.name, call.params)[0] for call in calls for stub.answer in [call.answer]]
                rss = daemon.rss()
    return {"first": firsts, "others": others, "again": again, "calls": len(calls), "wrong": wrong, "rss": rss}


def timed(daemon: Daemon, method: str, params: Any) -> tuple[tuple[float, float], dict[str, Any]]:
    ran, began = daemon.cpu(), time.perf_counter()
    answer = daemon.call(method, params)
    wall = time.perf_counter() - began
    return (wall * 1000, (daemon.cpu() - ran) * 1000), answer


if __name__ == "__main__":
    print(json.dumps(first_calls(Path(sys.argv[1]).resolve(), int(sys.argv[2]) if len(sys.argv) > 2 else 9)))
