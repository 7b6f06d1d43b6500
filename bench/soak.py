"""Runs a daemon under mixed load for a while and checks every answer: python bench/soak.py --seconds 3600 --rate 150

Sends requests of all kinds and sizes (to 2 MB), cancels, streams, agents' messages and broken frames over one pipe.
Counts wrong, missing and surplus answers, and prints their number and the memory once a minute. Exit status 1 where anything was
wrong.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
LARGEST = 2_000_000
ANSWER_SECONDS = 30.0
JUNK = [b'{"jsonrpc":\n', b"[1,2]\n", b'{"id":{}}\n', b"\xff\xfe\n", b'{"jsonrpc":"2.0","method":"no/such"}\n']


class Soak:
    """The client. `expected` holds what each open id must be answered with."""

    def __init__(self, process: asyncio.subprocess.Process, seed: int, *, agents: bool) -> None:
        self.process = process
        self.agents = agents
        self.random = random.Random(seed)
        self.expected: dict[int, tuple[str, Any, float]] = {}
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.next_id = 0

    # -- sending -----------------------------------------------------------------------------------------------

    def request(self, kind: str, method: str, params: Any, expected: Any) -> bytes:
        self.next_id += 1
        self.expected[self.next_id] = (kind, expected, time.monotonic())
        self.counts[kind] += 1
        return json.dumps({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params}).encode() + b"\n"

    def size(self) -> int:
        """Most are small, some are large: evenly over the powers of ten."""
        return int(10 ** self.random.uniform(0, 6.3))

    def step(self) -> bytes:
        dice = self.random.random()
        if dice < 0.6:
            way = self.random.choice(["inline", "coroutine", "thread"])
            value = "x" * min(self.size(), LARGEST)
            return self.request("echo", f"soak/{way}", {"value": value}, value)
        if dice < 0.7:
            line = self.request("cancelled", "soak/sleep", {"seconds": 30}, -32800)
            return line + b'{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":%d}}\n' % self.next_id
        if dice < 0.78:
            count = self.random.randrange(1, 40)
            return self.request("stream", "soak/count", {"to": count}, {"completed": True, "events": count})
        if dice < 0.86 and self.agents:
            text = "y" * min(self.size(), LARGEST // 4)
            part = {"data": {"skill": "soak/coroutine", "input": {"value": text}}}
            message = {"messageId": str(self.next_id), "role": "ROLE_USER", "parts": [part]}
            return self.request("agent", "SendMessage", {"message": message}, "TASK_STATE_COMPLETED")
        if dice < 0.92:
            return self.request("error", "soak/fails", {"why": "because"}, -32000)
        if dice < 0.96:
            return self.request("invalid", "soak/inline", {"value": 1}, -32602)
        self.counts["junk"] += 1
        return self.random.choice(JUNK)

    async def send(self, seconds: float, rate: float) -> None:
        assert self.process.stdin is not None
        ends = time.monotonic() + seconds
        due = time.monotonic()
        while time.monotonic() < ends:
            self.process.stdin.write(self.step())
            await self.process.stdin.drain()
            due += 1 / rate
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            while len(self.expected) > 1000:
                await asyncio.sleep(0.01)
        deadline = time.monotonic() + ANSWER_SECONDS
        while self.expected and time.monotonic() < deadline:
            await asyncio.sleep(0.05)
        for call_id, (kind, _, _) in self.expected.items():
            self.wrong.append(f"{kind} {call_id}: no answer")
        self.process.stdin.close()

    # -- receiving ---------------------------------------------------------------------------------------------

    async def receive(self) -> None:
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            message = json.loads(line)
            if message.get("method") == "stream/event":
                self.counts["event"] += 1
            elif message.get("id") is None:
                self.counts["unidentified"] += 1
            else:
                self.check(message)

    def check(self, message: dict[str, Any]) -> None:
        found = self.expected.pop(message["id"], None)
        if found is None:
            self.wrong.append(f"{message['id']}: answered twice, or never asked")
            return
        kind, expected, _ = found
        match kind:
            case "echo" | "stream":
                right = message.get("result") == expected
            case "agent":
                right = message.get("result", {}).get("task", {}).get("status", {}).get("state") == expected
            case _:
                right = message.get("error", {}).get("code") == expected
        if not right:
            self.wrong.append(f"{kind} {message['id']}: {json.dumps(message)[:200]}")


def memory(pid: int) -> float:
    """The daemon's resident memory in MiB."""
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--rate", type=float, default=150, help="requests a second")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-agents", action="store_true", help="send no messages to the agent, whose tasks are kept")
    parser.add_argument("--interval", type=float, default=60, help="seconds between two lines about memory")
    options = parser.parse_args()
    command = [sys.executable, "-P", "-m", "discreet", "serve", "./soak_app.py:soak", "--framing", "newline"]
    process = await asyncio.create_subprocess_exec(
        *command, "--log-level", "error", stdin=-1, stdout=-1, limit=2**26, cwd=HERE
    )
    soak = Soak(process, options.seed, agents=not options.no_agents)
    began = time.monotonic()
    idle = 0.0

    async def watch() -> None:
        nonlocal idle
        await asyncio.sleep(2)
        idle = memory(process.pid)
        while True:
            done = sum(soak.counts.values())
            line = f"{time.monotonic() - began:7.0f} s  {done:9,} messages  {memory(process.pid):7.1f} MiB"
            print(f"{line}  {len(soak.expected):4} open  {len(soak.wrong):3} wrong", flush=True)
            await asyncio.sleep(options.interval)

    watching = asyncio.create_task(watch())
    receiving = asyncio.create_task(soak.receive())
    await soak.send(options.seconds, options.rate)
    last = memory(process.pid)
    watching.cancel()
    await receiving
    status = await process.wait()
    print(f"\n{sum(soak.counts.values()):,} messages: {dict(soak.counts)}")
    print(f"memory: {idle:.1f} MiB after two seconds, {last:.1f} MiB at the end; exit status {status}")
    print(f"{len(soak.wrong)} wrong" + "".join(f"\n  {text}" for text in soak.wrong[:20]))
    return 1 if soak.wrong or status else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
