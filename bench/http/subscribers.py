"""1,000 subscribers by SSE on one task: how long until all have every event, with and without one that reads nothing.

    python -P bench/http/subscribers.py [SUBSCRIBERS] [EVENTS] [CHARACTERS]

Prints the times and the largest resident size of the daemon. Needs discreet[http], asyncio and Linux.
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from uuid import uuid4

AGENT = """
import anyio
from discreet.agents import Agent

class Worker:
    def __init__(self):
        self.going = {}

    async def execute(self, context, events):
        word, _, rest = context.text.partition(" ")
        if word == "go":
            self.going[rest].set()
            return await events.complete()
        going = self.going[context.task.id] = anyio.Event()
        await events.working()
        await going.wait()
        for number in range(int(rest)):
            await events.artifact(f"{number} " + "x" * SIZE, artifact_id="a", append=True)
        await events.complete()

    async def cancel(self, context, events):
        await events.cancel()

agent = Agent(Worker(), name="Worker", description="Works.")
"""
LAST = b"TASK_STATE_COMPLETED"
ROUNDS = 3
WRITE_SECONDS = 2.0
"""How long a client may read nothing before it is dropped."""


def request(method: str, params: object) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    head = "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\na2a-version: 1.0\r\n"
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


def message(text: str) -> dict[str, object]:
    return {
        "message": {"messageId": str(uuid4()), "role": "ROLE_USER", "parts": [{"text": text}]},
        "configuration": {"returnImmediately": True},
    }


async def call(port: int, method: str, params: object) -> dict[str, object]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request(method, params))
    head = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head)
    assert length is not None, head
    answer = json.loads(await reader.readexactly(int(length[1])))
    writer.close()
    assert "result" in answer, answer
    return answer["result"]


class Subscriber(asyncio.Protocol):
    """Counts the events of one stream, which it does not keep."""

    def __init__(self, task_id: str, events: int, ready: asyncio.Semaphore) -> None:
        self.begun = asyncio.get_running_loop().create_future()
        self.ended = asyncio.get_running_loop().create_future()
        self._request = request("SubscribeToTask", {"id": task_id})
        self._events = events
        self._found = 0
        self._tail = b""

    def connection_made(self, transport: asyncio.Transport) -> None:
        self.transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        data = self._tail + data
        self._found += data.count(b"\ndata: ")
        ended = LAST in data
        self._tail = b"" if ended else data[-24:] if b"\ndata: " not in data[-24:] else data[-6:]
        if not self.begun.done() and self._found:
            self.begun.set_result(None)
        if ended and not self.ended.done():
            self.ended.set_result(self._found)


async def run(port: int, readers: int, events: int, *, stalled: bool) -> float:
    loop = asyncio.get_running_loop()
    task = (await call(port, "SendMessage", message(f"work {events}")))["task"]["id"]
    ready = asyncio.Semaphore(0)
    subscribers = []
    for _ in range(readers + stalled):
        _, subscriber = await loop.create_connection(lambda: Subscriber(task, events, ready), "127.0.0.1", port)
        await subscriber.begun
        subscribers.append(subscriber)
    if stalled:
        last = subscribers.pop().transport
        last.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        last.pause_reading()
    began = time.perf_counter()
    await call(port, "SendMessage", message(f"go {task}"))
    counts = await asyncio.wait_for(asyncio.gather(*(each.ended for each in subscribers)), 600)
    took = time.perf_counter() - began
    if stalled:
        await asyncio.sleep(WRITE_SECONDS + 0.5)  # the daemon drops it
    assert min(counts) >= events + 1, f"events are missing: {min(counts)}"
    for each in subscribers:
        each.transport.abort()
    return took


def main() -> None:
    total = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    events = int(sys.argv[2]) if len(sys.argv) > 2 else 100
    size = sys.argv[3] if len(sys.argv) > 3 else "1000"
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "worker.py").write_text(AGENT.replace("SIZE", size))
        command = [sys.executable, "-P", "-m", "discreet", "serve", "./worker.py:agent", "--isolated", "--no-stdio"]
        command += [
            "--http",
            "127.0.0.1:0",
            "--http-max-connections",
            "5000",
            "--http-max-requests",
            "5000",
            "--frame-timeout",
            str(WRITE_SECONDS),
        ]
        with subprocess.Popen([*command, "--log-level", "info"], cwd=folder, stderr=subprocess.PIPE) as daemon:
            try:
                port = next(
                    int(found[1]) for line in daemon.stderr if (found := re.search(rb"url=http://[^:]+:(\d+)", line))
                )
                status = Path(f"/proc/{daemon.pid}/status")
                at_start = resident(status, "VmRSS")
                without = [asyncio.run(run(port, total - 1, events, stalled=False)) for _ in range(ROUNDS)]
                with_one = [asyncio.run(run(port, total - 1, events, stalled=True)) for _ in range(ROUNDS)]
                print(f"{total - 1} readers, {events} events each: {shown(without)}")
                print(f"and one that reads nothing: {shown(with_one)}")
                print(f"resident: {at_start} MiB at the start, {resident(status, 'VmHWM')} MiB at most")
            finally:
                daemon.kill()
                print(f"dropped because they read nothing: {daemon.stderr.read().count(b'http.client_too_slow')}")


def shown(times: list[float]) -> str:
    return f"{median(times):.2f} s ({', '.join(f'{each:.2f}' for each in times)})"


def resident(status: Path, name: str) -> int:
    found = re.search(rf"{name}:\s+(\d+) kB", status.read_text())
    return int(found[1]) // 1024


if __name__ == "__main__":
    main()
