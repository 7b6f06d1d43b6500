"""Kills daemons at each kind of commit while executions take steps, and checks that no step runs again that was stored.

step_kills.py [--store sqlite|postgresql|redis|URL] [--tasks N] [--rounds N] [--alive N] [--seed N] [--points NAME,…]

Each daemon gets SIGKILL at one point: before, in the midst of, or after a commit that does one thing, such as to create tasks,
to take tasks over or to store steps; or between the effect of a step and its record. Every point has its turn in each round.
The next daemon on the same store goes on with what is there. A client keeps many tasks alive, and sends each daemon again what
the one before did not answer. A task takes steps in coroutines and in threads, one that is tried again, a sleep, and a question
that is answered; one in four asks first whether it may begin.

Prints how many tasks each point has hit. Exit status 1 where a step ran after it was stored, a task does not end with its result,
or a point was never hit. Needs an importable discreet; for a server of its own also the requirements of the tests.
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
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

APP = """
import os
import random
import signal
import threading
import time

import anyio

from discreet.a2a.types import (
    INTERRUPTED, TERMINAL, ArtifactChanged, ExecutionBegun, MessageAdded, StatusChanged, StepStored, TaskCreated,
)
from discreet.agents import Agent, RequestContext, Retry, TaskEvents
from discreet.agents.stores.checks import Retention
from discreet.agents.stores.factory import create_store
from discreet.agents.stores.interface import QUEUED
from discreet.daemon.memory import MemoryBudget

journal = os.open(os.environ["JOURNAL"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
wanted, when, ended_before, skipped = (
    os.environ["POINT"], os.environ["WHEN"], int(os.environ["ENDED_BEFORE"]), int(os.environ["SKIPPED"])
)
chance = random.Random(os.urandom(8))
begun_here = set()
between = set()  # steps that have had their effect, and are not stored


def note(*words):
    os.write(journal, (" ".join(map(str, words)) + "\\n").encode())


def die(tasks):
    note("hit", wanted, when, tasks)
    os.kill(os.getpid(), signal.SIGKILL)


class Countdown:
    ended = 0

    def __init__(self):
        self.skip = skipped

    def is_over(self):
        if self.ended < ended_before or when == "never":
            return False
        self.skip -= 1
        return self.skip < 0


countdown = Countdown()


def kinds_of(change):
    for event in change.events:
        match event:
            case TaskCreated():
                yield "queued" if change.owner == QUEUED else "created"
            case MessageAdded():
                yield "message"
            case ExecutionBegun():
                yield "begun"
            case StepStored(step) if step.result is not None:
                yield "thread step" if step.name == "thread" else "step"
            case StepStored(step):
                yield "failure of a step" if step.failures else "sleep" if step.due else "answer"
            case StatusChanged(status):
                if status.state in TERMINAL:
                    yield "end"
                else:
                    yield "question" if status.state in INTERRUPTED else "status"
            case ArtifactChanged():
                yield "artifact"
    if change.owner is None and change.state not in TERMINAL:
        yield "release"
    if change.previous_owner not in (None, QUEUED):
        yield "takeover"


class Dying:
    def __init__(self, inner):
        self._inner = inner

    def __getattr__(self, name):
        return getattr(self._inner, name)

    async def commit(self, changes):
        tasks = sum(wanted in kinds_of(change) for change in changes)
        dies = tasks and countdown.is_over()
        return await self._do(lambda: self._commit(changes), dies, tasks)

    async def claim(self, limit):
        dies = wanted == "claim" and when != "after" and countdown.is_over()
        return await self._do(lambda: self._claim(limit), dies, limit)

    async def _do(self, call, dies, tasks):
        if dies and when == "before":
            die(tasks)
        if dies and when == "in":
            threading.Thread(target=lambda: (time.sleep(chance.expovariate(500)), die(tasks))).start()
        result = await call()
        if dies and when == "after":
            die(tasks)
        return result

    async def _claim(self, limit):
        claimed = await self._inner.claim(limit)
        if claimed and wanted == "claim" and when == "after" and countdown.is_over():
            die(len(claimed))
        return claimed

    async def _commit(self, changes):
        refusals = await self._inner.commit(changes)
        for change, refusal in zip(changes, refusals):
            for event in change.events if refusal is None else ():
                match event:
                    case TaskCreated():
                        begun_here.add(change.task_id)
                    case StepStored(step) if step.result is not None:
                        note("stored", change.task_id, step.name)
                        between.discard((change.task_id, step.name))
                    case StatusChanged(status) if status.state in TERMINAL:
                        Countdown.ended += 1
                        note("ended", change.task_id)
        return refusals


async def note_stored(task_id):
    # what the store has of the steps of an execution that goes on here
    task = await store.load(task_id)
    names = {step.name for waiting in task.waiting for step in waiting.steps if step.result is not None}
    for each in task.later_events:
        if isinstance(each.event, StepStored) and each.event.step.result is not None:
            names.add(each.event.step.name)
    for name in names:
        note("known", task_id, name)


async def work(task_id: str, name: str, value: int) -> int:
    effect(task_id, name)
    await anyio.sleep(chance.random() / 100)
    if name == "flaky" and chance.random() < 0.3:
        raise OSError
    return value


def work_in_thread(task_id: str, name: str, value: int) -> int:
    effect(task_id, name)
    return value


def effect(task_id, name):
    note("run", task_id, name)
    if name != "flaky":
        between.add((task_id, name))
        if wanted == ("thread effect" if name == "thread" else "effect") and countdown.is_over():
            die(len(between))


class Worker:
    async def execute(self, context: RequestContext, events: TaskEvents) -> None:
        task_id, number = context.task.id, int(context.text)
        total = 0
        if number % 4 == 0 and context.message.message_id == context.text:
            return await events.require_input("Ready?")
        if task_id not in begun_here:
            await note_stored(task_id)
        await events.working("begin")
        for step in ("a", "b", "c"):
            total += await events.step(step, work, task_id, step, number)
        total += await events.step("thread", work_in_thread, task_id, "thread", number)
        await events.artifact("half", artifact_id="half")
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
COMMITS = [
    *("created", "queued", "claim", "takeover", "begun", "status", "step", "thread step", "failure of a step"),
    *("sleep", "artifact", "question", "release", "message", "end"),
]
"""What a commit does that a daemon is killed at."""
EFFECTS = ["effect", "thread effect"]
OF_WORKERS = ("queued", "claim")
"""A daemon with `--role worker` leaves what it is sent to the queue, and claims it."""
LIFE_SECONDS = 60.0
"""A daemon that did not come to its point by then is killed where it is."""
LAST_SECONDS = 600.0


class Point(NamedTuple):
    kind: str
    when: str


POINTS = [*(Point(kind, when) for kind in COMMITS for when in ("before", "in", "after"))]
POINTS += [Point(kind, "before the record") for kind in EFFECTS]
NEVER = Point("-", "never")


class Asked(NamedTuple):
    task_id: str
    question: str


class Daemon:
    def __init__(self, folder: Path, store: str, point: Point, ended_before: int, chance: random.Random) -> None:
        of_worker = point.kind in OF_WORKERS or (point.kind != "created" and chance.random() < 0.5)
        variables = {"JOURNAL": str(folder / "journal"), "STORE": store, "POINT": point.kind, "WHEN": point.when}
        if point.kind == "takeover":  # which is over before anything else
            ended_before, skipped = 0, 0
        else:
            skipped = chance.randrange(4)
        numbers = {"ENDED_BEFORE": str(ended_before), "SKIPPED": str(skipped)}
        command = [sys.executable, "-P", "-m", "discreet", "serve", "./app.py:agent", "--framing", "newline"]
        self.process = subprocess.Popen(
            [*command, "--log-level", "error", *(("--role", "worker", "--max-runs", "1024") if of_worker else ())],
            cwd=folder,
            env=os.environ | variables | numbers,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=(folder / "log").open("ab"),
            text=True,
        )

    def send(self, number: int, asked: Asked | None) -> None:
        """Send a message, whose answer comes when its task has stopped. One that a dead daemon does not read is lost."""
        text = str(ANSWER if asked is not None and asked.question == "And?" else number)
        message = {"messageId": str(number), "role": "ROLE_USER", "parts": [{"text": text}]}
        if asked is not None:
            message |= {"messageId": f"{number} {asked.question}", "taskId": asked.task_id}
        request = {"jsonrpc": "2.0", "id": number, "method": "SendMessage", "params": {"message": message}}
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass

    def answers(self) -> Iterator[dict[str, Any]]:
        """The answers, until the daemon is dead."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.endswith("\n"):
                yield json.loads(line)


class Client:
    """Keeps so many tasks `alive`, and counts how they ended. `asking` has those whose question it has seen, by their numbers."""

    def __init__(self, count: int, alive: int) -> None:
        self.count = count
        self.ended: Counter[str] = Counter()
        self._new = iter(range(1, count + 1))
        self._alive = alive
        self._asking: dict[int, Asked | None] = {}

    @property
    def is_done(self) -> bool:
        return self.ended.total() >= self.count

    def use(self, daemon: Daemon, most: int) -> None:
        """Until it is dead, has ended so many tasks, or all have ended."""
        most += self.ended.total()
        for number, asked in self._asking.items():  # what the one before did not answer
            self._send(daemon, number, asked)
        while len(self._asking) < self._alive and (number := next(self._new, None)) is not None:
            self._send(daemon, number, None)
        for answer in daemon.answers():
            self._take(daemon, answer)
            if self.is_done or self.ended.total() > most:
                return

    def _send(self, daemon: Daemon, number: int, asked: Asked | None) -> None:
        self._asking[number] = asked
        daemon.send(number, asked)

    def _take(self, daemon: Daemon, answer: dict[str, Any]) -> None:
        number, task = answer["id"], answer.get("result", {}).get("task", {})
        status = task.get("status", {"state": f"{answer.get('error')}"})
        if any(word in json.dumps(answer.get("error")) for word in ("UNAVAILABLE", "OVERLOADED")):
            return self._send(daemon, number, self._asking[number])
        text = status.get("message", {}).get("parts", [{}])[0].get("text")
        if status["state"] == "TASK_STATE_INPUT_REQUIRED":
            return self._send(daemon, number, Asked(task["id"], text))
        is_right = text == str(STEPS * number + ANSWER) and status["state"] == "TASK_STATE_COMPLETED"
        self.ended["completed" if is_right else f"{status['state']}: {text}"] += 1
        self._asking.pop(number)
        if (following := next(self._new, None)) is not None:
            self._send(daemon, following, None)


def live(folder: Path, store: str, point: Point, client: Client, share: float, chance: random.Random) -> None:
    """The life of one daemon: it dies at its point, when about this share of all tasks has ended meanwhile."""
    enough = int(client.count * share * chance.uniform(0.5, 1.1))
    daemon = Daemon(folder, store, point, enough, chance)
    timer = threading.Timer(LAST_SECONDS if point is NEVER else LIFE_SECONDS, daemon.process.kill)
    timer.start()
    ended, began = client.ended.total(), time.monotonic()
    try:
        client.use(daemon, client.count if point is NEVER else 2 * enough + 100)
    finally:
        timer.cancel()
        daemon.process.send_signal(signal.SIGTERM if point is NEVER else signal.SIGKILL)
        daemon.process.wait()
    seconds = time.monotonic() - began
    print(f"{point.kind}, {point.when}: {client.ended.total() - ended} tasks ended in {seconds:.1f} s", file=sys.stderr)


class Found(NamedTuple):
    """`counts` has the lines of the journal by kind; `kills` and `tasks` what each point has hit; `repeated` the calls that were
    cut off before they were stored."""

    counts: Counter[str]
    kills: Counter[Point]
    tasks: Counter[Point]
    repeated: int


def check(journal: Path) -> Found:
    """Read the journal. A step that ran after it was stored counts as `run after it was stored`."""
    found = Found(Counter(), Counter(), Counter(), 0)
    ran: Counter[str] = Counter()
    stored: set[str] = set()
    ended: set[str] = set()
    for line in journal.read_text().splitlines():
        kind, key = line.split(" ", 1)
        found.counts[kind] += 1
        if kind in ("stored", "known"):
            stored.add(key)
        elif kind == "ended" and key in ended:
            found.counts["ended twice"] += 1
        elif kind == "ended":
            ended.add(key)
        elif kind == "hit":
            point = next(each for each in POINTS if key.startswith(f"{each.kind} {each.when} "))
            found.kills[point] += 1
            found.tasks[point] += int(key.split()[-1])
        elif kind == "run" and key in stored:
            found.counts["run after it was stored"] += 1
        elif kind == "run":
            ran[key] += 1
    return found._replace(repeated=sum(count - 1 for key, count in ran.items() if not key.endswith("flaky")))


@contextmanager
def running_store(name: str, folder: Path) -> Iterator[str]:
    """The address of a store for the block, on a server of its own where the name is that of a kind."""
    if name not in ("postgresql", "redis"):
        yield f"sqlite:{folder / 'tasks.db'}" if name == "sqlite" else name
        return
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "lib"))
    from support import postgres, redis

    if name == "postgresql":
        with postgres.running_server() as server:
            yield server.new_database()
    else:
        with redis.running_server() as other:
            yield other.new_store()


def report(client: Client, found: Found, lives: int, seconds: float) -> bool:
    """Print the figures. Returns whether everything was right."""
    counts = found.counts
    print(f"{client.count} tasks, {lives} daemons, {found.kills.total()} killed at their points, in {seconds:.0f} s")
    print(
        f"{counts['run']} calls of steps, {counts['stored']} stored, {found.repeated} cut off before and called again"
    )
    print("| point | before: kills, tasks | in | after | before the record |\n| --- | --- | --- | --- | --- |")
    for kind in dict.fromkeys(point.kind for point in POINTS):
        cells = [Point(kind, when) for when in ("before", "in", "after", "before the record")]
        row = [f"{found.kills[cell]}, {found.tasks[cell]}" if cell in POINTS else "" for cell in cells]
        print(f"| {kind} | {' | '.join(row)} |")
    for what, count in client.ended.most_common():
        print(f"  {count} tasks: {what}")
    wrong = counts["run after it was stored"] + counts["ended twice"]
    print(
        f"  {counts['run after it was stored']} steps ran after they were stored, {counts['ended twice']} tasks ended twice"
    )
    return not wrong and set(client.ended) == {"completed"}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument(
        "--store", default="sqlite", help="sqlite, postgresql or redis on a server of its own, or a URL"
    )
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=1, help="how often each point has its turn")
    parser.add_argument("--alive", type=int, default=200, help="tasks that are not over at one time")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--points", help="only those of these kinds of commits")
    options = parser.parse_args()
    chosen = [point for point in POINTS if options.points is None or point.kind in options.points.split(",")]
    chance = random.Random(options.seed)
    points = deque(point for _ in range(options.rounds) for point in chance.sample(chosen, len(chosen)))
    with tempfile.TemporaryDirectory() as name, running_store(options.store, Path(name)) as store:
        folder, client = Path(name), Client(options.tasks, options.alive)
        (folder / "app.py").write_text(APP)
        began, lives, share = time.monotonic(), 0, 0.85 / len(points)
        while points and not client.is_done:
            live(folder, store, points.popleft(), client, share, chance)
            lives += 1
        while not client.is_done and lives < options.rounds * len(POINTS) + 5:
            live(folder, store, NEVER, client, 1.0, chance)
            lives += 1
        found = check(folder / "journal")
        right = report(client, found, lives, time.monotonic() - began)
        missed = [point for point in chosen if not found.kills[point]]
        print("".join(f"  never hit: {point.kind}, {point.when}\n" for point in missed), end="")
        print((folder / "log").read_text()[-3000:], end="")
    return 0 if right and not missed else 1


if __name__ == "__main__":
    sys.exit(main())
