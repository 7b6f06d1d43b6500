"""Measures tools over HTTP whose work is I/O: discreet beside fastmcp, in turns of one run, under the load of a public benchmark.

run.py [--seconds N] [--rounds N] [--users N] [--only NAMES] [--json FILE]
DISCREET_PY and FASTMCP_PY name interpreters: discreet[http,openapi,uvloop] and fastmcp, each with redis, httpx and uvloop.

Each user goes on and on: a session for each tool and one for tools/list, and a pause of 50 ms. A session is `initialize`,
`notifications/initialized`, the request, and DELETE where the server gave a session id. `initialize` and the request count: that
is how the benchmark counts. The server has one processor; Redis, the API and the load have the other.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import redis
import uvloop

HERE = Path(__file__).parent
USERS = 50
SEEDED = 1000
SERVE = "{ours} -P -m discreet serve {apps} --no-stdio --http-mcp --log-level error --http 127.0.0.1:{port}"
IMPORTED = SERVE.replace("{apps}", "./server_discreet.py:from_api ./server_discreet.py:api")
SERVERS: dict[str, str] = {
    "discreet": IMPORTED,
    "discreet, uvloop": IMPORTED + " --backend uvloop",
    "discreet, httpx": SERVE.replace("{apps}", "./server_discreet.py:with_httpx"),
    "fastmcp, 1 worker": "{theirs} server_fastmcp.py {port} 1",
    "fastmcp, 4 workers": "{theirs} server_fastmcp.py {port} 4",
}
SEARCH = {"category": "Electronics", "min_price": 50, "max_price": 500, "limit": 10}
ORDER = [{"product_id": 42, "quantity": 2}, {"product_id": 1337, "quantity": 1}]


def calls(user: str) -> list[tuple[str, dict[str, Any], bytes]]:
    """What a user asks for: method, params, and what the answer must hold."""
    return [
        ("tools/call", {"name": "search_products", "arguments": SEARCH}, b"top10_popular_ids"),
        ("tools/call", {"name": "get_user_cart", "arguments": {"user_id": user}}, b"recent_history"),
        ("tools/call", {"name": "checkout", "arguments": {"user_id": user, "items": ORDER}}, b"confirmed"),
        ("tools/list", {}, b"search_products"),
    ]  # fmt: skip


class Connection(asyncio.Protocol):
    """One request at a time."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport  # uvloop's is none of asyncio's
        self._answer: asyncio.Future[bytes] | None = None
        self._buffer = b""

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, found, body = self._buffer.partition(b"\r\n\r\n")
        if not found:
            return
        lower = head.lower()
        if b"transfer-encoding: chunked" in lower:
            whole = body.endswith(b"0\r\n\r\n")
        else:
            at = lower.find(b"content-length:")
            whole = at < 0 or len(body) >= int(lower[at + 15 :].split(b"\r\n", 1)[0])
        if whole and self._answer is not None:
            answer, self._answer, self._buffer = self._answer, None, b""
            answer.set_result(head + b"\r\n\r\n" + body)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionError("the server closed the connection"))

    async def send(self, method: bytes, body: bytes, session: bytes) -> bytes:
        self._answer = answer = asyncio.get_running_loop().create_future()
        self._transport.write(
            method + b" /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
            b"accept: application/json, text/event-stream\r\n"
            + session
            + b"content-length: %d\r\n\r\n%b" % (len(body), body)
        )
        return await answer


HELLO = json.dumps(
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "load", "version": "1"}},
    }
).encode()
HELLO_DONE = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'


async def use(port: int, user: str, until: float, latencies: list[float]) -> None:
    _, connection = await asyncio.get_running_loop().create_connection(Connection, "127.0.0.1", port)
    texts = [
        (json.dumps({"jsonrpc": "2.0", "id": 2, "method": method, "params": params}).encode(), expected)
        for method, params, expected in calls(user)
    ]
    while time.perf_counter() < until:
        for text, expected in texts:
            began = time.perf_counter()
            greeted = await connection.send(b"POST", HELLO, b"")
            latencies.append(time.perf_counter() - began)
            at = greeted.lower().find(b"mcp-session-id:")
            session = b"mcp-session-id:" + greeted[at + 15 :].split(b"\r\n", 1)[0] + b"\r\n" if at >= 0 else b""
            await connection.send(b"POST", HELLO_DONE, session)
            began = time.perf_counter()
            answer = await connection.send(b"POST", text, session)
            latencies.append(time.perf_counter() - began)
            if b" 200 " not in answer[:20] or expected not in answer or b'"isError":true' in answer:
                raise ValueError(f"not the answer that was expected: {answer[:600]!r}")
            if session:
                await connection.send(b"DELETE", b"", session)
        await asyncio.sleep(0.05)


async def load(port: int, users: int, seconds: float) -> list[float]:
    latencies: list[float] = []
    until = time.perf_counter() + seconds
    await asyncio.gather(*(use(port, f"user-{number:05d}", until, latencies) for number in range(1, users + 1)))
    return latencies


def seed(port: int) -> None:
    with redis.Redis(port=port) as client:
        client.flushall()
        for number in range(SEEDED):
            user = f"user-{number:05d}"
            items = json.dumps([{"product_id": number + 1, "quantity": 1}])
            client.hset(f"bench:cart:{user}", mapping={"items": items, "total": "19.5"})
            client.rpush(f"bench:history:{user}", *(json.dumps({"order_id": f"ORD-{n}"}) for n in range(5)))
        client.zadd("bench:popular", {f"product:{number}": 100_000 - number for number in range(1, 101)})


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def begin(stack: ExitStack, command: list[str], port: int, cpu: int, **environ: str) -> subprocess.Popen[bytes]:
    """A server on this processor, once it listens. Its children end with it."""
    process = subprocess.Popen(
        command, cwd=HERE, env={**os.environ, **environ}, start_new_session=True, stdin=subprocess.DEVNULL,
        preexec_fn=lambda: os.sched_setaffinity(0, {cpu}),  # noqa: PLW1509 - this process has no threads
    )  # fmt: skip
    stack.callback(process.wait)
    stack.callback(os.killpg, process.pid, signal.SIGKILL)
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return process
        except OSError:
            time.sleep(0.05)
    raise TimeoutError(f"{command} does not listen")


def family(pid: int) -> list[int]:
    """This process and those that it has begun, which are in its session."""
    found = []
    for each in Path("/proc").iterdir():
        if each.name.isdigit():
            try:
                if int((each / "stat").read_text().rpartition(")")[2].split()[3]) == pid:
                    found.append(int(each.name))
            except OSError:
                continue
    return found


def used(pid: int) -> tuple[float, float]:
    """Seconds of processor time, and MB resident, of a server with all its processes."""
    ticks = memory = 0
    for each in family(pid):
        fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
        memory += int(fields[21]) * os.sysconf("SC_PAGE_SIZE")
    return ticks / os.sysconf("SC_CLK_TCK"), memory / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--users", type=int, default=USERS)
    parser.add_argument("--only", default=",".join(name.replace(", ", "+") for name in SERVERS))
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    names = [name.replace("+", ", ") for name in args.only.split(",")]
    theirs, others = sorted(os.sched_getaffinity(0))[:2]
    os.sched_setaffinity(0, {others})
    found: dict[str, list[dict[str, float]]] = defaultdict(list)
    with ExitStack() as stack:
        api, store = free_port(), free_port()
        begin(stack, [sys.executable, "-P", "shop_api.py", str(api)], api, others)
        begin(
            stack,
            ["redis-server", "--port", str(store), "--save", "", "--appendonly", "no", "--loglevel", "warning"],
            store,
            others,
        )
        environ = {
            "SHOP_API": f"http://127.0.0.1:{api}",
            "SHOP_REDIS": f"redis://127.0.0.1:{store}",
            "PYTHONPATH": f"{HERE}:{os.environ.get('PYTHONPATH', '')}",
        }
        for number in range(args.rounds):
            for turn in range(len(names)):
                name = names[(number + turn) % len(names)]
                with ExitStack() as served:
                    seed(store)
                    port = free_port()
                    command = SERVERS[name].format(
                        ours=os.environ.get("DISCREET_PY", sys.executable),
                        theirs=os.environ.get("FASTMCP_PY", sys.executable),
                        port=port,
                    )
                    process = begin(served, command.split(" "), port, theirs, **environ)
                    time.sleep(3)  # until all workers listen
                    uvloop.run(load(port, args.users, 2))  # for warming up
                    before, _ = used(process.pid)
                    began = time.perf_counter()
                    latencies = uvloop.run(load(port, args.users, args.seconds))
                    seconds = time.perf_counter() - began
                    after, memory = used(process.pid)
                    found[name].append(
                        {
                            "per_s": len(latencies) / seconds,
                            "p50_ms": statistics.median(latencies) * 1e3,
                            "p99_ms": statistics.quantiles(latencies, n=100)[98] * 1e3,
                            "cpu_ms": (after - before) / len(latencies) * 1e3,
                            "mb": memory,
                        }
                    )
                    print(name, {key: round(value, 2) for key, value in found[name][-1].items()}, flush=True)
    print(
        "\n| server | requests/s | p50 ms | p99 ms | CPU ms a request | RSS MB |\n| --- | --- | --- | --- | --- | --- |"
    )
    medians = {
        name: {key: statistics.median(each[key] for each in rounds) for key in rounds[0]}
        for name, rounds in found.items()
    }
    for name, each in medians.items():
        texts = (
            f"{each['per_s']:.0f}",
            f"{each['p50_ms']:.1f}",
            f"{each['p99_ms']:.1f}",
            f"{each['cpu_ms']:.2f}",
            f"{each['mb']:.0f}",
        )
        print(f"| {name} | {' | '.join(texts)} |")
    if args.json:
        Path(args.json).write_text(json.dumps(found))


if __name__ == "__main__":
    main()
