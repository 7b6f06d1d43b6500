"""What is measured of one contestant, in a process of its own: agents_scenarios.py CONTESTANT SCENARIO [key=value …]

Prints the figures as one JSON object. `bench/agents` runs it, with the interpreter of the contestant.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import json
import os
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Awaitable, Callable
from itertools import cycle, islice
from typing import Any

from agents_requests import result, state_of, task_of

Figures = dict[str, float]

CONTESTANTS = {
    "discreet": ("agents_ours", "spawned", "1.0"),
    "discreet-inside": ("agents_ours", "in_process", "1.0"),
    "sdk-1": ("agents_sdk_v1", "in_process", "1.0"),
    "sdk-0.3": ("agents_sdk_v03", "in_process", "0.3"),
}
WARM = 200
CONTEXTS = 100
ENDED_EVERY = 100
TIME = time.perf_counter


async def _cost(c: Any, requests: list[bytes], window: int, name: str) -> Figures:
    """CPU of the server, and time, for each of these requests."""
    cpu, start = c.cpu(), TIME()
    replies = await c.ask(requests, window)
    cpu, seconds = c.cpu() - cpu, TIME() - start
    for reply in replies[:: max(1, len(replies) // 50)]:
        result(reply)
    count = len(requests)
    return {f"{name}_cpu_ms": 1e3 * cpu / count, f"{name}_per_s": count / seconds}


async def send(c: Any, count: int) -> Figures:
    """One task a message, one artifact a task."""
    warm = await c.ask([c.requests.send("do") for _ in range(WARM)], 8)
    assert state_of(task_of(warm[-1])) == "completed"
    assert task_of(warm[-1])["artifacts"]
    figures = await _cost(c, [c.requests.send("do") for _ in range(count)], 1, "send_1")
    return figures | await _cost(c, [c.requests.send("do") for _ in range(count)], 32, "send_32")


async def get(c: Any, count: int) -> Figures:
    """The same hundred tasks over and over."""
    replies = await c.ask([c.requests.send("do") for _ in range(100)], 8)
    tasks = [task_of(reply)["id"] for reply in replies]
    requests = [c.requests.get(task) for task in islice(cycle(tasks), count)]
    await c.ask(requests[:WARM], 1)
    return await _cost(c, requests, 1, "get_1") | await _cost(c, requests, 32, "get_32")


async def listing(c: Any, tasks: int, count: int) -> Figures:
    """Tasks that wait for input, one in a hundred ended; a hundred contexts. Pages of 50."""
    for start in range(0, tasks, 1000):
        words = ["do" if not number % ENDED_EVERY else "park" for number in range(start, start + 1000)]
        names = [f"context-{number % 97 if number % ENDED_EVERY else 0}" for number in range(start, start + 1000)]
        await c.ask([c.requests.send(w, context=n) for w, n in zip(words, names, strict=True)], 32)
    page: Any = {"nextPageToken": ""}
    seen, token = 0, ""
    while seen < tasks // 2:  # pages of 100 up to the middle
        token = page["nextPageToken"]
        page = await _page(c, pageSize=100, pageToken=token)
        seen += len(page["tasks"])
        assert page["totalSize"] == tasks, page["totalSize"]
    middle = page["tasks"][-1]["status"]["timestamp"]
    figures: Figures = {}
    for name, params in {
        "first": {},
        "context": {"contextId": "context-7"},
        "status": {"status": "TASK_STATE_COMPLETED"},
        "after": {"statusTimestampAfter": middle},
        "deep": {"pageToken": token},
        "deep_context": {"contextId": "context-7", "pageToken": token},
    }.items():
        assert (await _page(c, **params))["tasks"], name
        start, many = TIME(), 1
        await c.ask([c.requests.list(**params)], 1)
        many = max(3, min(count, int(2 / (TIME() - start))))
        figures |= await _cost(c, [c.requests.list(**params) for _ in range(many)], 1, f"list_{name}")
    return {name: value for name, value in figures.items() if name.endswith("_cpu_ms")}


async def _page(c: Any, **params: Any) -> Any:
    (reply,) = await c.ask([c.requests.list(**params)], 1)
    return result(reply)


async def parked(c: Any, tasks: int, trace: int = 0) -> Figures:
    """Memory for each task that waits for input. `trace`: of what Python has allocated, else of the process."""
    await c.ask([c.requests.send("park") for _ in range(WARM)], 8)
    requests = [c.requests.send("park") for _ in range(tasks)]
    if trace:
        gc.collect()
        tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0] if trace else _resident(c.pid)
    for start in range(0, tasks, 100):
        replies = await c.ask(requests[start : start + 100], 8)
        assert state_of(task_of(replies[0])) == "input-required"
        del replies
    gc.collect()
    after = tracemalloc.get_traced_memory()[0] if trace else _resident(c.pid)
    return {"parked_traced_bytes" if trace else "parked_rss_bytes": (after - before) / tasks}


def _resident(pid: int) -> int:
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def stream(c: Any, counts: str, size: int, limit: float = 20.0) -> Figures:
    """Chunks appended to one artifact, as events; and whether twice as many take twice as long. Ends before what would
    take longer than `limit` seconds."""
    await c.stream(c.requests.send(f"stream {WARM} {size}", stream=True))
    figures: Figures = {}
    expected = 0.0
    for count in map(int, counts.split(",")):
        if expected > limit:
            break
        gc.collect()
        cpu, start = c.cpu(), TIME()
        try:
            events = await c.stream(c.requests.send(f"stream {count} {size}", stream=True))
        except ValueError as exc:  # that many it can't do
            print(f"{count} chunks: {exc}", file=sys.stderr)
            break
        cpu, seconds = c.cpu() - cpu, TIME() - start
        assert events >= count, events
        figures[f"stream_{count}_per_s"] = count / seconds
        figures[f"stream_{count}_cpu_us"] = 1e6 * cpu / count
        figures[f"stream_{count}_cpu_s"] = cpu
        expected = seconds * 4
    return figures


async def kept(c: Any, count: int, senders: int) -> Figures:
    """Messages that begin tasks, and tasks read, with a SQLite file as the store."""
    await c.ask([c.requests.send("do") for _ in range(50)], 8)
    figures = await _cost(c, [c.requests.send("do") for _ in range(count)], senders, "sqlite_send")
    reply = await c.ask([c.requests.send("do")], 1)
    requests = [c.requests.get(task_of(reply[0])["id"])] * count
    await c.ask(requests[:20], 1)
    return figures | await _cost(c, requests, 1, "sqlite_get")


async def start(c: Any, spawned: float) -> Figures:
    """From the start of the process to the first task. `spawned` is when this one was, on the machine's clock."""
    await _first(c)
    return {"start_ms": 1e3 * (time.clock_gettime(time.CLOCK_MONOTONIC) - getattr(c, "spawned", spawned))}


async def first(c: Any) -> Figures:
    """The first task of a process that has started."""
    await c.ready()
    await asyncio.sleep(0.2)
    began = TIME()
    await _first(c)
    return {"first_call_ms": 1e3 * (TIME() - began)}


async def _first(c: Any) -> None:
    (reply,) = await c.ask([c.requests.send("do")], 1)
    assert state_of(task_of(reply)) == "completed"


SCENARIOS: dict[str, Callable[..., Awaitable[Figures]]] = {
    "send": send,
    "get": get,
    "list": listing,
    "parked": parked,
    "stream": stream,
    "sqlite": kept,
    "sqlite-list": listing,
    "start": start,
    "first": first,
}


async def measure(contestant: str, scenario: str, options: dict[str, Any]) -> Figures:
    module, opening, version = CONTESTANTS[contestant]
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DISK")) as folder:
        store = f"sqlite:{folder}/tasks.db" if scenario.startswith("sqlite") else "memory"
        async with getattr(importlib.import_module(module), opening)(version, store) as c:
            return await SCENARIOS[scenario](c, **options)


def _option(text: str) -> tuple[str, Any]:
    name, _, value = text.partition("=")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


if __name__ == "__main__":
    figures = asyncio.run(measure(sys.argv[1], sys.argv[2], dict(map(_option, sys.argv[3:]))))
    print(json.dumps(figures), flush=True)
    os._exit(0)  # what executors of a contestant may still wait for is not measured
