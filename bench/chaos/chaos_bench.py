"""Two gateways, two workers and a daemon that is both on one store, clients with streams and conversations, and random faults.

Prints figures, and what was wrong.

Exit status 1 where anything was wrong. The same --seed has the same tasks and faults at the same times. Needs Linux, and for the
stores their servers on this machine.
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from support.chaos.run import Options, run_chaos


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="bench/chaos/run", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--store", choices=["postgresql", "redis", "sqlite"], default="postgresql")
    parser.add_argument("--minutes", type=float, default=10.0, help="how long faults happen")
    parser.add_argument("--tasks", type=int, default=2000)
    parser.add_argument(
        "--conversations", type=int, default=100, help="tasks that take many messages while they are busy"
    )
    parser.add_argument("--losses", type=int, default=1, help="answers to each message of a task that get lost")
    parser.add_argument("--task-seconds", type=float, help="about how long a task takes; default: half of the minutes")
    parser.add_argument(
        "--pause", type=float, help="seconds between two numbers of a task; default: one number each 10 ms in all"
    )
    parser.add_argument("--fault-pause", type=float, default=3.0, help="seconds from one fault to the next, on average")
    parser.add_argument("--seed", type=int, help="default: a random one, which is printed")
    parser.add_argument("--same-role", action="store_true", help="five daemons that all take calls and work")
    parser.add_argument(
        "--without-resume", action="store_true", help="an agent whose tasks fail when their daemon dies"
    )
    parser.add_argument("--steps", action="store_true", help="an agent that takes steps, sleeps and asks")
    parser.add_argument("--quiet", action="store_true", help="do not print faults as they happen")
    parser.add_argument(
        "--keep", action="store_true", help="keep the logs of the daemons, also where nothing was wrong"
    )
    for number in (signal.SIGINT, signal.SIGTERM):  # which shells ignore in the background; nothing may be left running
        signal.signal(number, signal.default_int_handler)
    chosen = parser.parse_args()
    seconds = chosen.minutes * 60
    task_seconds = chosen.task_seconds or seconds / 2
    begin_seconds = max(seconds - task_seconds, seconds / 3)
    under_way = chosen.tasks * min(1.0, task_seconds / begin_seconds)
    options = Options(
        store=chosen.store,
        seed=random.randrange(10**6) if chosen.seed is None else chosen.seed,
        seconds=seconds,
        tasks=chosen.tasks,
        conversations=0 if chosen.without_resume else chosen.conversations,
        losses=chosen.losses,
        fronts=2,
        both=1,
        begin_seconds=begin_seconds,
        task_seconds=task_seconds,
        pause=chosen.pause or max(0.05, under_way * 0.01),
        fault_pause=chosen.fault_pause,
        roles=not chosen.same_role,
        resuming=not chosen.without_resume,
        steps=chosen.steps,
    )
    print(f"seed {options.seed}: {options}", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="chaos-"))
    outcome = run_chaos(options, folder, (lambda _: None) if chosen.quiet else (lambda line: print(line, flush=True)))
    print(f"\n| figure | {chosen.store} |\n| --- | --- |")
    for name, figure in outcome.figures.items():
        print(f"| {name} | {figure} |")
    print(
        f"\n{len(outcome.wrong)} wrong"
        + "".join(f"\n  {text[:1000]}" for text in [*outcome.wrong[:20], *outcome.wrong[20:][-20:]])
    )
    if outcome.wrong or chosen.keep:
        print(f"logs: {folder}")
    else:
        shutil.rmtree(folder)
    return 1 if outcome.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
