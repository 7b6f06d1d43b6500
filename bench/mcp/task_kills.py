"""Kills a daemon again and again while it runs tools as tasks (MCP), and checks that no task is lost that it told of.

task_kills.py [--kills N] [--calls N] [--seed N]

A client begins tasks over stdio at a daemon with `--store sqlite:…`, which gets SIGKILL at a random moment: mostly within 0.3 s
after its first answer, now and then while it starts. The next daemon on the same file goes on. Exit status 1 where a task is not
found, ends with a wrong result, asks again what the client has answered, or where one that must not be repeated ran twice. Needs
an importable discreet.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

APP = """
import os
import time
from discreet import Context, Service

app = Service("")
FORM = {"type": "object", "properties": {"factor": {"type": "integer"}}, "required": ["factor"]}
begun = os.open(os.environ["BEGUN"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)

@app.mutation(task="required", idempotent=True)
def again(number: int, seconds: float) -> int:
    time.sleep(seconds)
    return number * 2

@app.query(task="required")
async def look(number: int, seconds: float) -> int:
    time.sleep(seconds / 10)
    return number * 3

@app.mutation(task="required", idempotent=True)
async def ask(ctx: Context, number: int, seconds: float) -> int:
    answer = await ctx.request("elicitation/create", {"message": "How much?", "requestedSchema": FORM}, timeout=3600)
    return number * answer["content"]["factor"]

@app.mutation(task="required")
def once(number: int, seconds: float) -> int:
    os.write(begun, b"%d\\n" % number)
    time.sleep(seconds)
    return number * 5
"""
STARTING = 0.1
"""How many of the daemons are killed without having answered, mostly while they start."""
OPEN = ("working", "input_required")
UPDATES = 1_000_000
"""Above the numbers of other requests."""
FACTORS = {"again": 2, "look": 3, "once": 5, "ask": 7}
ANSWER = {"action": "accept", "content": {"factor": FACTORS["ask"]}}
PREFIX = "io.modelcontextprotocol/"
META = {
    f"{PREFIX}protocolVersion": "2026-07-28",
    f"{PREFIX}clientCapabilities": {"elicitation": {}, "extensions": {f"{PREFIX}tasks": {}}},
}


class Daemon:
    """A daemon over stdio. Its answers are there as soon as they were read, also those that came before it was killed."""

    def __init__(self, folder: Path) -> None:
        limits = ["--max-ended-tasks", "1000000", "--log-level", "error"]
        command = [sys.executable, "-P", "-m", "discreet", "serve", "./app.py:app", "--dialect", "mcp"]
        self._process = subprocess.Popen(
            [*command, "--store", "sqlite:tasks.db", *limits],
            cwd=folder,
            env=os.environ | {"BEGUN": str(folder / "begun")},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=(folder / "log").open("ab"),
        )
        self.answers: dict[int, dict[str, Any]] = {}
        self._arrived = threading.Condition()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.endswith(b"\n"):
                answer = json.loads(line)
                with self._arrived:
                    self.answers[answer["id"]] = answer
                    self._arrived.notify_all()

    def send(self, message_id: int, method: str, params: dict[str, Any]) -> None:
        """Send a request. One that a dead daemon does not read is lost."""
        assert self._process.stdin is not None
        message = {"jsonrpc": "2.0", "id": message_id, "method": method, "params": params | {"_meta": META}}
        try:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass

    def wait(self, message_id: int, seconds: float = 60.0) -> dict[str, Any]:
        with self._arrived:
            if not self._arrived.wait_for(lambda: message_id in self.answers, seconds):
                raise TimeoutError(f"no answer to request {message_id}")
            return self.answers[message_id]

    def wait_any(self, seconds: float = 60.0) -> None:
        with self._arrived:
            if not self._arrived.wait_for(lambda: self.answers, seconds):
                raise TimeoutError("no answer at all")

    def end(self, number: signal.Signals) -> None:
        """End it, and read what it has said."""
        self._process.send_signal(number)
        self._process.wait()
        self._reader.join()


class Kills:
    def __init__(self, folder: Path, seed: int) -> None:
        self._folder = folder
        self._random = random.Random(seed)
        self._number = 0
        self.tasks: dict[str, tuple[str, int]] = {}
        """The tool and the number of each task that was told of."""
        self._open: dict[str, list[str]] = {}
        self.answered: set[str] = set()
        """The keys of questions whose answers were acknowledged."""
        self.unanswered = 0
        self.faults: Counter[str] = Counter()

    def round(self, calls: int) -> None:
        """Begin tasks, kill the daemon meanwhile, and keep those that it told of. Look at some of the earlier ones."""
        daemon = Daemon(self._folder)
        asked = {}
        for _ in range(calls):
            self._number += 1
            tool = self._random.choice([*FACTORS])
            asked[self._number] = (tool, self._number)
            arguments = {"number": self._number, "seconds": self._random.uniform(0, 0.2)}
            daemon.send(self._number, "tools/call", {"name": tool, "arguments": arguments})
        looked = self._random.sample([*self.tasks], min(2, len(self.tasks))) + self._asking()
        for place, task_id in enumerate(looked, 1):
            daemon.send(-place, "tasks/get", {"taskId": task_id})
        answering = dict([*self._open.items()][:2])
        for place, (task_id, keys) in enumerate(answering.items(), UPDATES):
            daemon.send(-place, "tasks/update", {"taskId": task_id, "inputResponses": dict.fromkeys(keys, ANSWER)})
        if self._random.random() < STARTING:
            time.sleep(self._random.uniform(0, 0.3))
        else:
            daemon.wait_any()
            time.sleep(self._random.uniform(0, 0.3))
        daemon.end(signal.SIGKILL)
        for number, call in asked.items():
            if number not in daemon.answers:
                self.unanswered += 1
            elif "result" in (answer := daemon.answers[number]):
                self.tasks[answer["result"]["taskId"]] = call
            else:
                self.faults[f"a call was refused: {answer['error']}"] += 1
        for place, task_id in enumerate(looked, 1):
            if -place in daemon.answers:
                self._check(task_id, daemon.answers[-place], is_last=False)
        for place, (task_id, keys) in enumerate(answering.items(), UPDATES):
            if "result" in daemon.answers.get(-place, {}):
                self.answered.update(keys)
                self._open.pop(task_id, None)

    def _asking(self) -> list[str]:
        """Tasks that were begun not long ago, and that ask."""
        recent = [*self.tasks][-20:]
        return [task_id for task_id in recent if self.tasks[task_id][0] == "ask" and task_id not in self._open][:2]

    def finish(self) -> Counter[str]:
        """Have a last daemon do what is left, and look at every task. Returns how many have which status."""
        daemon = Daemon(self._folder)
        found: Counter[str] = Counter()
        try:
            for place, task_id in enumerate(self.tasks, 1):
                until = time.monotonic() + 300
                answer = self._get(daemon, place, task_id)
                while answer.get("result", {}).get("status") in OPEN and time.monotonic() < until:
                    self._check(task_id, answer, is_last=False)
                    if keys := self._open.pop(task_id, None):
                        responses = dict.fromkeys(keys, ANSWER)
                        daemon.send(-UPDATES - place, "tasks/update", {"taskId": task_id, "inputResponses": responses})
                        daemon.wait(-UPDATES - place)
                        self.answered.update(keys)
                    time.sleep(0.02)
                    answer = self._get(daemon, place, task_id)
                found[f"{self.tasks[task_id][0]}: {self._check(task_id, answer, is_last=True)}"] += 1
        finally:
            daemon.end(signal.SIGTERM)
        lines = (self._folder / "begun").read_text().split() if (self._folder / "begun").exists() else []
        twice = sum(1 for count in Counter(lines).values() if count > 1)
        if twice:
            self.faults["ran twice, which it must not"] += twice
        return found

    def _get(self, daemon: Daemon, place: int, task_id: str) -> dict[str, Any]:
        daemon.answers.pop(-place, None)
        daemon.send(-place, "tasks/get", {"taskId": task_id})
        return daemon.wait(-place)

    def _check(self, task_id: str, answer: dict[str, Any], *, is_last: bool) -> str:
        """Note what is wrong with a task, and return its status."""
        tool, number = self.tasks[task_id]
        if "result" not in answer:
            self.faults["a task was lost"] += 1
            return "lost"
        result = answer["result"]
        status = str(result["status"])
        if status == "completed":
            if result["result"].get("structuredContent") != {"result": number * FACTORS[tool]}:
                self.faults["a result is wrong"] += 1
        elif status == "input_required":
            keys = [*result["inputRequests"]]
            self._open[task_id] = keys
            if not self.answered.isdisjoint(keys):
                self.faults["what was answered is asked again"] += 1
        elif not (status == "failed" and tool == "once") and (is_last or status != "working"):
            self.faults[f"{tool} is {status}"] += 1
        return status


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--calls", type=int, default=6, help="tasks that are begun before each")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "app.py").write_text(APP)
        kills = Kills(folder, options.seed)
        began = time.monotonic()
        for _ in range(options.kills):
            kills.round(options.calls)
        seconds = time.monotonic() - began
        found = kills.finish()
        print(f"{options.kills} SIGKILLs in {seconds:.0f} s, {len(kills.tasks)} tasks told of, ", end="")
        print(f"{kills.unanswered} calls without an answer, {len(kills.answered)} questions answered")
        for what, count in sorted(found.items()):
            print(f"  {count} x {what}")
        for what, count in kills.faults.most_common():
            print(f"  FAULT {count} x {what}")
        log = (folder / "log").read_text()
        print(log[-2000:])
    return 1 if kills.faults else 0


if __name__ == "__main__":
    sys.exit(main())
