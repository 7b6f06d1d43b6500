"""Kills a daemon at its commits while executions take steps, and checks that no step runs again that was stored.

step_kills.py [--kills N] [--tasks N] [--store URL] [--seed N] [--pause SECONDS]

Each daemon gets SIGKILL immediately before or immediately after one of its commits, which is picked at random; the next one on
the same store goes on with what is there, and with new tasks. A task takes steps in coroutines and in threads, one that is tried
again, a sleep, and a question that is answered. Exit status 1 where a step ran after it was stored, or a task does not end with
its result. Needs an importable discreet.
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
import time
from collections import Counter
from pathlib import Path
from typing import Any

APP = """
import os
import random
import signal

import anyio

from discreet.a2a.types import StepStored
from discreet.agents import Agent, RequestContext, Retry, TaskEvents
from discreet.agents.stores.checks import Retention
from discreet.agents.stores.factory import create_store
from discreet.daemon.memory import MemoryBudget

journal = os.open(os.environ["JOURNAL"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
die_at, before = int(os.environ["DIE_AT"]), os.environ["BEFORE"] == "True"
chance = random.Random(os.urandom(8))


def note(*words):
    os.write(journal, (" ".join(words) + "\\n").encode())


class Dying:
    def __init__(self, inner):
        self._inner, self._count = inner, 0

    def __getattr__(self, name):
        return getattr(self._inner, name)

    async def commit(self, changes):
        self._count += any(change.events for change in changes)
        if self._count == die_at and before:
            os.kill(os.getpid(), signal.SIGKILL)
        refusals = await self._inner.commit(changes)
        for change, refusal in zip(changes, refusals):
            for event in change.events if refusal is None else ():
                if isinstance(event, StepStored) and event.step.result is not None:
                    note("stored", change.task_id, event.step.name)
        if self._count == die_at:
            os.kill(os.getpid(), signal.SIGKILL)
        return refusals


async def work(task_id: str, name: str, value: int) -> int:
    note("run", task_id, name)
    await anyio.sleep(chance.random() / 100)
    if name == "flaky" and chance.random() < 0.3:
        raise OSError
    return value


def work_in_thread(task_id: str, name: str, value: int) -> int:
    note("run", task_id, name)
    return value


class Worker:
    async def execute(self, context: RequestContext, events: TaskEvents) -> None:
        task_id, number = context.task.id, int(context.text)
        total = 0
        for step in ("a", "b", "c"):
            total += await events.step(step, work, task_id, step, number)
        total += await events.step("thread", work_in_thread, task_id, "thread", number)
        await events.sleep_for("nap", 0.05)
        total += await events.step("flaky", work, task_id, "flaky", number, retry=Retry(attempts=1000, first_pause=0.01))
        answer = await events.ask("question", "And?")
        total += await events.step("last", work, task_id, "last", int(answer.parts[0].text or ""))
        await events.complete(str(total))


store = create_store(os.environ["STORE"], MemoryBudget(2**30), Retention(max_tasks=10**9))
agent = Agent(Worker(), name="worker", description="Works.", steps=True, store=Dying(store))
"""
STEPS = 5
"""Of a task, besides the one that adds its answer."""
ANSWER = 7
BATCH = 40
"""Messages that the last daemon works on at the same time."""


class Daemon:
    def __init__(self, folder: Path, store: str, die_at: int, *, before: bool) -> None:
        variables = {"JOURNAL": str(folder / "journal"), "DIE_AT": str(die_at), "BEFORE": str(before), "STORE": store}
        command = [sys.executable, "-P", "-m", "discreet", "serve", "./app.py:agent", "--framing", "newline"]
        self.process = subprocess.Popen(
            [*command, "--log-level", "error"],
            cwd=folder,
            env=os.environ | variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=(folder / "log").open("ab"),
            text=True,
        )

    def send(self, number: int, text: str, task_id: str | None = None, *, at_once: bool) -> None:
        """Send a message. One that a dead daemon does not read is lost."""
        message = {"messageId": f"{task_id or number}", "role": "ROLE_USER", "parts": [{"text": text}]}
        if task_id is not None:
            message["taskId"] = task_id
        params = {"message": message, "configuration": {"returnImmediately": at_once}}
        request = {"jsonrpc": "2.0", "id": number, "method": "SendMessage", "params": params}
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass

    def answer(self) -> dict[str, Any] | None:
        """The next answer; None where the daemon is dead."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        answer: dict[str, Any] | None = json.loads(line) if line.endswith("\n") else None
        return answer


def kill_once(folder: Path, store: str, numbers: range, chance: random.Random, known: dict[int, str]) -> None:
    """Send new messages, and answers to some tasks that were told of, to a daemon that dies meanwhile."""
    daemon = Daemon(folder, store, chance.randint(1, 8 * len(numbers)), before=chance.random() < 0.5)
    for number in numbers:
        daemon.send(number, str(number), at_once=True)
    for number in chance.sample([*known], min(len(known), len(numbers))):
        daemon.send(-number, str(ANSWER), known[number], at_once=True)
    try:
        daemon.process.wait(chance.uniform(1, 3))
    except subprocess.TimeoutExpired:  # it has nothing more to commit
        daemon.process.send_signal(signal.SIGKILL)
    while (answer := daemon.answer()) is not None:
        if "result" in answer and answer["id"] > 0:
            known[answer["id"]] = answer["result"]["task"]["id"]
        elif "result" in answer:
            known.pop(-answer["id"], None)
    daemon.process.wait()


def finish(folder: Path, store: str, count: int) -> Counter[str]:
    """Have a last daemon end every task. Returns how many ended how."""
    daemon = Daemon(folder, store, 0, before=False)
    found: Counter[str] = Counter()
    waiting = iter(range(1, count + 1))
    for _, number in zip(range(BATCH), waiting, strict=False):
        daemon.send(number, str(number), at_once=False)
    while found.total() < count:
        answer = daemon.answer()
        if answer is None:
            found["the last daemon is dead"] += 1
            break
        task = answer.get("result", {}).get("task", {})
        status = task.get("status", {"state": f"{answer.get('error')}"})
        if status["state"] == "TASK_STATE_INPUT_REQUIRED":
            daemon.send(answer["id"], str(ANSWER), task["id"], at_once=False)
            continue
        text = status.get("message", {}).get("parts", [{}])[0].get("text")
        is_right = text == str(STEPS * answer["id"] + ANSWER)
        found["completed" if is_right else f"{status['state']}: {text}"] += 1
        if (following := next(waiting, None)) is not None:
            daemon.send(following, str(following), at_once=False)
    daemon.process.send_signal(signal.SIGTERM)
    daemon.process.wait()
    return found


def check(journal: Path) -> tuple[Counter[str], int]:
    """Count the lines of the journal, those of steps that ran after they were stored, and the calls that were cut off before."""
    ran: Counter[str] = Counter()
    stored: set[str] = set()
    found: Counter[str] = Counter()
    for line in journal.read_text().splitlines():
        kind, key = line.split(" ", 1)
        found[kind] += 1
        if kind == "stored":
            stored.add(key)
        elif key in stored:
            found["run after it was stored"] += 1
        else:
            ran[key] += 1
    return found, sum(count - 1 for key, count in ran.items() if not key.endswith("flaky"))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--tasks", type=int, default=5, help="tasks that are begun before each")
    parser.add_argument("--store", help="by default a file of SQLite in a folder of its own")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pause", type=float, default=0.0, help="seconds between a kill and the next daemon")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder, chance, known = Path(name), random.Random(options.seed), dict[int, str]()
        store = options.store or f"sqlite:{folder / 'tasks.db'}"
        (folder / "app.py").write_text(APP)
        began = time.monotonic()
        for turn in range(options.kills):
            kill_once(folder, store, range(turn * options.tasks + 1, (turn + 1) * options.tasks + 1), chance, known)
            time.sleep(options.pause)
        seconds = time.monotonic() - began
        ended = finish(folder, store, options.kills * options.tasks)
        found, repeated = check(folder / "journal")
        print(
            f"{options.kills} SIGKILLs in {seconds:.0f} s; {found['run']} calls of steps, {found['stored']} stored, ",
            end="",
        )
        print(f"{repeated} cut off before they were stored and called again")
        for what, count in ended.most_common():
            print(f"  {count} tasks: {what}")
        wrong = found["run after it was stored"]
        print(f"  {wrong} steps ran after they were stored")
        print((folder / "log").read_text()[-2000:], end="")
    return 1 if wrong or set(ended) != {"completed"} else 0


if __name__ == "__main__":
    sys.exit(main())
