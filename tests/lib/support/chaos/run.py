"""One chaos run: starts the store, the proxies and the daemons, lets clients and faults at them, and checks what came of it."""

from __future__ import annotations

import asyncio
import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import msgspec

from ..postgres import free_port
from .calls import BrokenError, RefusedError, call
from .checker import TaskLog, check, until_all_ended
from .client import Client, run_client
from .conversation import Converser
from .executions import check_executions
from .figures import (
    BEGINNINGS,
    TAKEOVER_SECONDS,
    Happened,
    RunNote,
    quantiles,
    run_notes,
    takeovers,
)
from .plan import Fault, plan_conversations, plan_faults, plan_tasks
from .processes import Daemon, DaemonExit, Role, arguments
from .proxy import Proxies
from .record import Record
from .stores import Store, running_store

START_SECONDS: Final = 60.0
WAITED_SECONDS: Final = 6.0
"""Calls wait for a store that is away, and daemons look for it, about so long."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """`seconds` is how long faults happen. `begin_seconds` is within what time tasks begin, `task_seconds` about how long one takes.

    Beside `fronts` and `workers` there are daemons that do `both`. With `roles` False every daemon takes calls and works. Without `resuming` the agent can't resume; with `steps` it goes on with those that are stored. `settle_seconds` bounds what may
    follow when the last fault is over. So many as `losses` answers to the messages of each task are lost.
    """

    store: str
    seed: int
    seconds: float
    tasks: int
    begin_seconds: float
    task_seconds: float
    pause: float
    fault_pause: float = 3.0
    longest_fault: float = 60.0
    fronts: int = 3
    workers: int = 2
    max_runs: int = 1024
    both: int = 0
    conversations: int = 0
    losses: int = 0
    roles: bool = True
    resuming: bool = True
    steps: bool = False
    settle_seconds: float = 90.0


class Outcome(msgspec.Struct):
    """`wrong` is empty where everything was as promised. `figures` are the rows of a table."""

    wrong: list[str]
    figures: dict[str, str]
    faults: list[Happened]
    exits: list[DaemonExit]


class Chaos:
    """A run under way."""

    def __init__(
        self, options: Options, folder: Path, store: Store, proxies: Proxies | None, say: Callable[[str], None]
    ) -> None:
        self.options = options
        self.store = store
        self.proxies = proxies
        self.record = Record()
        self.happened: list[Happened] = []
        self._say = say
        self._folder = folder
        self._app = "stepping" if options.steps else "agent" if options.resuming else "without_resume"
        self._store_away = 0
        self._store_stopped = False
        self._store_changing = asyncio.Lock()
        self._disk_full = False
        front: Role = "front" if options.roles else "both"
        worker: Role = "worker" if options.roles else "both"
        roles: list[Role] = [front] * options.fronts + ["both"] * options.both
        self.fronts = [
            self._daemon(f"{role if options.roles else 'front'}{n}", role, n) for n, role in enumerate(roles)
        ]
        self.workers = [self._daemon(f"worker{n}", worker, len(roles) + n) for n in range(options.workers)]

    @property
    def daemons(self) -> list[Daemon]:
        return [*self.fronts, *self.workers]

    @property
    def _gateways(self) -> list[Daemon]:
        """Those that clients call."""
        return self.fronts if self.options.roles else self.daemons

    def _daemon(self, name: str, role: Role, index: int | None = None) -> Daemon:
        way = None if self.proxies is None or index is None else self.proxies.ports[index]
        port = free_port()
        return Daemon(
            self._folder, name, port, arguments(self._app, self.store.url(way), port, role, self.options.max_runs)
        )

    async def run(self) -> Outcome:
        self.daemons[0].start()  # it makes the tables
        await self._ready(self.daemons[0])
        for daemon in self.daemons[1:]:
            daemon.start()
        for daemon in self.daemons[1:]:
            await self._ready(daemon)
        supervising = [asyncio.create_task(daemon.supervise()) for daemon in self.daemons]
        try:
            await self._disturb()
        finally:
            for task in supervising:
                task.cancel()
        await asyncio.gather(*(daemon.end(signal.SIGTERM) for daemon in self.daemons))
        return await self._judge()

    async def _ready(self, daemon: Daemon) -> None:
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                await call(daemon.port, "ListTasks", {"pageSize": 1})
                return
            except (BrokenError, RefusedError):
                if time.monotonic() > deadline:
                    raise RuntimeError(f"{daemon.name} did not start: {daemon.log.read_text()[-2000:]}") from None
                await asyncio.sleep(0.1)

    async def _disturb(self) -> None:
        options = self.options
        ports = [daemon.port for daemon in self._gateways]
        plans = plan_tasks(
            options.seed,
            options.tasks,
            begin_seconds=options.begin_seconds,
            task_seconds=options.task_seconds,
            pause=options.pause,
            losses=options.losses,
        )
        self._deadline = asyncio.Event()
        conversations = plan_conversations(
            options.seed,
            options.conversations,
            begin_seconds=options.begin_seconds,
            task_seconds=options.task_seconds,
        )
        clients = [
            *(self._client(plan.at, plan.work.name, Client(plan, ports, self.record)) for plan in plans),
            *(self._client(plan.at, plan.name, Converser(plan, ports, self.record)) for plan in conversations),
        ]
        began = time.monotonic()
        faults = plan_faults(
            options.seed,
            options.seconds,
            server=self.proxies is not None,
            disk=self.store.can_fill,
            fronts=len(self.fronts),
            workers=len(self.workers),
            pause=options.fault_pause,
            longest=options.longest_fault,
        )
        try:
            async with asyncio.TaskGroup() as group:
                for fault in faults:
                    await asyncio.sleep(max(0.0, began + fault.at - time.monotonic()))
                    group.create_task(self._happen(fault))
            _, late = await asyncio.wait(clients, timeout=options.settle_seconds + options.task_seconds)
            if late:
                self._say(f"{len(late)} clients did not finish")
        finally:
            self._deadline.set()
            await asyncio.gather(*clients)

    def _client(self, at: float, name: str, client: Client | Converser) -> asyncio.Task[None]:
        return asyncio.create_task(run_client(at, name, client, self.record, self._deadline))

    # -- faults -------------------------------------------------------------------------------------------------

    async def _happen(self, fault: Fault) -> None:
        happened = Happened(fault, time.time(), time.time() + fault.seconds + 60)
        self.happened.append(happened)
        self._say(f"{fault.at:7.1f} s  {fault.kind} {fault.target}  for {fault.seconds:.1f} s")
        words = fault.kind.split()
        if words[1] in ("front", "worker"):
            daemon = (self.fronts if words[1] == "front" else self.workers)[fault.target]
            happened.pid = daemon.pids[-1]
            await self._hit(words[0], daemon, fault.seconds)
        elif words == ["kill", "all"]:
            await asyncio.gather(*(self._hit("kill", daemon, fault.seconds) for daemon in self.daemons))
        elif words == ["fill", "disk"]:
            await self._fill_disk(fault.seconds)
        elif "store" in words:
            await self._take_store_away(0.0 if words[0] == "restart" else fault.seconds)
        else:
            await self._disturb_way(
                words[0], range(len(self.daemons)) if words[1] == "all" else [fault.target], fault.seconds
            )
        happened.ended = time.time()

    async def _hit(self, how: str, daemon: Daemon, seconds: float) -> None:
        if how in ("stop", "strand"):
            daemon.send(signal.SIGSTOP)
            if how == "strand" and self.proxies is not None:
                self.proxies.tell(f"cut {self.daemons.index(daemon)}")
            await asyncio.sleep(seconds)
            return daemon.send(signal.SIGCONT)
        daemon.send(signal.SIGCONT)
        await daemon.end(signal.SIGKILL if how == "kill" else signal.SIGTERM)
        await asyncio.sleep(seconds)
        if not daemon.wanted:  # another fault may have started it again
            daemon.start()

    async def _take_store_away(self, seconds: float) -> None:
        self._store_away += 1
        async with self._store_changing:  # on a busy machine the start of the fault before may not be over
            if not self._store_stopped:
                await asyncio.to_thread(self.store.stop)
            self._store_stopped = True
        await asyncio.sleep(seconds)
        self._store_away -= 1
        async with self._store_changing:
            if self._store_stopped and not self._store_away:
                await asyncio.to_thread(self.store.start)
                self._store_stopped = False

    async def _fill_disk(self, seconds: float) -> None:
        if not self._disk_full:  # two at a time are one
            self._disk_full = True
            await asyncio.to_thread(self.store.fill)
            await asyncio.sleep(seconds)
            await asyncio.to_thread(self.store.free)
            self._disk_full = False

    async def _disturb_way(self, how: str, targets: range | list[int], seconds: float) -> None:
        assert self.proxies is not None
        for target in targets:
            self.proxies.tell(f"delay {target} {seconds / 20:.3f}" if how == "delay" else f"{how} {target}")
        if how != "cut":
            await asyncio.sleep(seconds)
            for target in targets:
                self.proxies.tell(f"normal {target}")

    # -- afterwards ---------------------------------------------------------------------------------------------

    async def _judge(self) -> Outcome:
        """By a daemon that did not take part. It also ends what the others left when they ended."""
        judge = self._daemon("judge", "both")
        judge.start()
        try:
            await self._ready(judge)
            tasks = await until_all_ended(judge.port, self.record, self.options.settle_seconds)
            hidden = (*BEGINNINGS, "effect")  # a step that is stored is no event for clients either
            runs = Counter(note.task_id for note in self._run_notes() if note.kind in hidden)
            killed = (
                len(self.happened) + self.options.steps
            )  # between what begins a run and the run itself; and a sleep
            logs = await check(
                judge.port, self.record, tasks, lambda task_id: runs[task_id] + killed, resuming=self.options.resuming
            )
        finally:
            judge.kill()
        self._notes = self._run_notes()
        histories = {task_id: log.history for task_id, log in logs.items()}
        check_executions(self.record, self._notes, histories, self.happened, stepping=self.options.steps)
        for name in sorted(self.record.unfinished):
            self.record.fail(f"the client of {name} did not finish")
        exits = [each for daemon in self.daemons for each in daemon.exits]
        for each in exits:
            if each.status != 2 or "discreet: --store:" not in each.log:
                self.record.fail(f"{each.name} ended by itself with status {each.status}: {each.log}")
        figures = self._figures(logs) | {"failures that daemons logged": _counted(self._read_logs())}
        return Outcome(self.record.wrong, figures, self.happened, exits)

    def _run_notes(self) -> list[RunNote]:
        with (self._folder / "runs").open() as lines:
            return run_notes(lines)

    def _read_logs(self) -> Counter[str]:
        """How often which failure was logged. A traceback is wrong, unless it only says that the store is away."""
        found: Counter[str] = Counter()
        for daemon in self.daemons:
            for line in daemon.log.read_text(errors="replace").splitlines():
                if " level=error " in line:
                    found[line.partition(" event=")[2].partition(" ")[0]] += 1
                if "Traceback" in line and "StoreUnavailableError" not in line:
                    self.record.fail(f"{daemon.name} logged a traceback: {line}")
        return found

    def _figures(self, logs: dict[str, TaskLog]) -> dict[str, str]:
        record = self.record
        notes = self._notes
        found = takeovers(self.happened, notes)
        for each in found:
            others = "" if each.alone else ", while something else was wrong"
            killed = f"{each.kill.fault.kind} {each.kill.fault.target} at {each.kill.fault.at:.1f} s"
            self._say(f"{killed}: {len(each.seconds)} tasks taken over within {each.seconds[-1]:.2f} s{others}")
        taken = [seconds for each in found for seconds in each.seconds]
        taken_alone = [seconds for each in found if each.alone for seconds in each.seconds]
        away = [(each.began, each.ended + WAITED_SECONDS) for each in self.happened if "store" in each.fault.kind]
        refused = [each for each in record.refusals if any(began <= each.at <= ended for began, ended in away)]
        named = [each for each in refused if each.reason == "UNAVAILABLE"]
        reasons = Counter(each.reason for each in record.refusals)
        states = Counter(log.state.removeprefix("TASK_STATE_").lower() for log in logs.values())
        streams = sum(len(subscriber.segments) for subscriber in record.subscribers)
        return {
            "tasks acknowledged": f"{len(record.begun):,} of {self.options.tasks:,}",
            "answers to messages that were lost": f"{record.counts['answers lost']:,}",
            "messages that began a task; tasks": f"{len({log.user_messages[0] for log in logs.values()}):,}; {len(logs):,}",
            "conversations": f"{len(record.talks):,} of {self.options.conversations:,}, with"
            f" {sum(len(talk.acknowledged) for talk in record.talks.values()):,} messages acknowledged",
            "what became of other messages": _counted(
                Counter({name: n for name, n in record.counts.items() if name.startswith("messages")})
            ),
            "executions, and turns resumed": f"{sum(note.kind == 'execute' for note in notes):,},"
            f" {sum(note.kind == 'resume' for note in notes):,}",
            "steps stored; effects cut off before, or tried again": f"{sum(note.kind == 'stored' for note in notes):,};"
            f" {_repeated(notes):,}",
            "tasks begun by a message that was not acknowledged": f"{len(logs.keys() - record.begun.keys() - record.talks.keys()):,}",
            "how tasks ended": _counted(states),
            "events of their logs": f"{sum(len(log.events) for log in logs.values()):,}",
            "subscribers, and their streams": f"{len(record.subscribers):,}, {streams:,}",
            "events that subscribers saw": f"{record.counts['events seen']:,}",
            "faults": _counted(Counter(each.fault.kind for each in self.happened)),
            "a killed worker's tasks until another runs them (median / largest)": quantiles(taken),
            "the same, of kills while nothing else was wrong": quantiles(taken_alone),
            f"of those more than {TAKEOVER_SECONDS:.0f} s": f"{sum(each > TAKEOVER_SECONDS for each in taken_alone):,}",
            "calls and streams that were refused or broke": _counted(reasons),
            "of those while the store was away": f"{len(refused):,}, {len(named):,} of them UNAVAILABLE",
            "reads that were behind what a subscriber had seen": f"{record.counts['looks behind what was seen']:,}"
            f" of {record.counts['looks']:,}",
            "daemons that ended because they found no store": f"{sum(each.status == 2 for d in self.daemons for each in d.exits):,}",
        }


def _repeated(notes: Sequence[RunNote]) -> int:
    effects = Counter((note.task_id, note.message, note.step) for note in notes if note.kind == "effect")
    return sum(count - 1 for count in effects.values())


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{number:,} {name}" for name, number in counts.most_common()) or "none"


def run_chaos(options: Options, folder: Path, say: Callable[[str], None] = lambda _: None) -> Outcome:
    """From beginning to end. Nothing that it started is left. Its files are in `folder`."""
    with ExitStack() as stack:
        store = stack.enter_context(running_store(options.store, folder))
        proxies = None
        if store.server_port is not None:
            proxies = Proxies(store.server_port, options.fronts + options.both + options.workers)
            stack.callback(proxies.close)
        chaos = Chaos(options, folder, store, proxies, say)
        stack.callback(lambda: [daemon.kill() for daemon in chaos.daemons])
        return asyncio.run(chaos.run())
