"""What a chaos run does, drawn from its seed: the tasks with what their clients do, and the faults. Does nothing itself."""

from __future__ import annotations

from random import Random
from typing import Final, Literal, TypeAlias

import msgspec

FaultKind: TypeAlias = Literal[
    "kill front",
    "kill worker",
    "kill all",
    "end front",
    "end worker",
    "stop front",
    "stop worker",
    "strand worker",
    "cut one",
    "cut all",
    "delay one",
    "silence one",
    "silence all",
    "mute one",
    "isolate one",
    "restart store",
    "store away",
    "fill disk",
]

_WEIGHTS: Final[dict[FaultKind, float]] = {
    "kill front": 3,
    "kill worker": 4,
    "kill all": 0.5,
    "end front": 1,
    "end worker": 1,
    "stop front": 2,
    "stop worker": 2,
    "strand worker": 3,
    "cut one": 3,
    "cut all": 1,
    "delay one": 2,
    "silence one": 2,
    "silence all": 1,
    "mute one": 2,
    "isolate one": 3,
    "restart store": 1,
    "store away": 1,
    "fill disk": 2,
}
_OF_PROCESSES: Final = ("kill front", "kill worker", "kill all", "end front", "end worker", "stop front", "stop worker")
_OF_SERVERS: Final = frozenset(_WEIGHTS) - {*_OF_PROCESSES, "fill disk"}
_LONGEST: Final[dict[FaultKind, float]] = {
    "stop front": 8,
    "stop worker": 12,
    "strand worker": 12,
    "store away": 8,
    "silence one": 12,
    "silence all": 6,
    "mute one": 12,
    "isolate one": 12,
    "fill disk": 6,
}
"""Seconds; 3 where nothing else is said."""
_ALONE_SECONDS: Final = 7.0
"""After half of the kills of a worker, and of the absences of the store, nothing else happens for so long, so that what they alone cause can be measured. They come
when what happened before is over."""
QUIET_SECONDS: Final = 2.0
"""After the end of a fault its consequences may last so long."""


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """What the agent is asked to do: publish so many numbers, with a pause of about so many seconds before each.

    It asks for input behind number `ask_at`, and sleeps behind number `nap_at` if it takes steps; 0 for never. `name` tells one task from
    another.
    """

    name: str
    numbers: int
    pause: float
    ask_at: int = 0
    nap_at: int = 0


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """A task and what its client does: `at` seconds after the start it begins it; behind number `cancel_at` it cancels it (0: never);
    behind `note_at` it sends another message; behind every number of `look_at` it gets or lists it. So many as `losses` answers to
    each of its messages are lost before it reads one."""

    work: Work
    at: float
    streamed: bool
    subscribers: int
    cancel_at: int
    note_at: int
    look_at: frozenset[int]
    losses: int = 0


class Mail(msgspec.Struct, frozen=True, kw_only=True):
    """One message of a conversation: its turn takes `ticks` times `pause` seconds. The turn of the `last` one ends the task, others ask
    for input. `name` is the message's id."""

    name: str
    ticks: int
    pause: float
    last: bool = False


class Sending(msgspec.Struct, frozen=True, kw_only=True):
    """When a message leaves, in seconds after the task is known; whether its sender waits for the end of its turn. So many as `losses`
    answers are lost before it reads one; with `again` it sends the message once more when it has one."""

    mail: Mail
    after: float
    waits: bool
    losses: int = 0
    again: bool = False


class Conversation(msgspec.Struct, frozen=True, kw_only=True):
    """A task that takes many messages, most of them while it is busy. The `last` one leaves when all others were answered."""

    name: str
    at: float
    first: Mail
    sendings: list[Sending]
    last: Mail


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """`target` is the daemon's number among those of its role, or among all. `alone`: nothing else is wrong then, and for
    some seconds afterwards."""

    at: float
    kind: FaultKind
    target: int
    seconds: float
    alone: bool = False


def plan_tasks(
    seed: int, count: int, *, begin_seconds: float, task_seconds: float, pause: float, losses: int = 0
) -> list[Plan]:
    """So many tasks that begin within `begin_seconds` and take about `task_seconds` each."""
    plans = []
    for index in range(count):
        dice = Random(f"{seed} task {index}")
        numbers = max(3, round(task_seconds * dice.uniform(0.4, 1.2) / pause))
        middle = dice.randrange(1, numbers)
        what = dice.random()
        asks, naps = what < 0.2, 0.4 <= what < 0.6
        name = f"{seed}-{index}"
        work = Work(name=name, numbers=numbers, pause=pause, ask_at=middle if asks else 0, nap_at=middle if naps else 0)
        plan = Plan(
            work=work,
            at=begin_seconds * index / count,
            streamed=dice.random() < 0.5,
            subscribers=2 if dice.random() < 0.2 else 1,
            cancel_at=middle if 0.2 <= what < 0.3 else 0,
            note_at=middle if 0.3 <= what < 0.4 else 0,
            look_at=frozenset(dice.sample(range(1, numbers + 1), 2)),
            losses=losses,
        )
        plans.append(plan)
    return plans


def plan_conversations(seed: int, count: int, *, begin_seconds: float, task_seconds: float) -> list[Conversation]:
    """So many conversations that begin within `begin_seconds` and take about `task_seconds` each. Messages come in bursts of one to
    three, or of eight, each at another gateway within milliseconds; the first burst follows the task's first message at once."""
    plans = []
    for index in range(count):
        dice = Random(f"{seed} conversation {index}")
        name = f"{seed}-talk-{index}"
        number = dice.randrange(4, 10)
        pause = task_seconds / number / 6

        def mail(which: int | str, dice: Random = dice, name: str = name, pause: float = pause) -> Mail:
            return Mail(name=f"{name}/{which}", ticks=dice.randrange(1, 8), pause=pause, last=which == "last")

        sendings: list[Sending] = []
        after = 0.0
        while len(sendings) < number:
            for _ in range(dice.choice((1, 2, 3, 3, 8))):
                losses = dice.randrange(1, 4) if dice.random() < 0.3 else 0
                waits, again = dice.random() < 0.3, dice.random() < 0.3
                sending = Sending(mail=mail(len(sendings)), after=after, waits=waits, losses=losses, again=again)
                sendings.append(sending)
                after += dice.choice((0.0, 0.003, 0.02))
            after += dice.uniform(0, 2 * task_seconds / number)
        plans.append(
            Conversation(
                name=name, at=begin_seconds * index / count, first=mail("first"), sendings=sendings, last=mail("last")
            )
        )
    return plans


def plan_faults(
    seed: int,
    seconds: float,
    *,
    server: bool,
    disk: bool,
    fronts: int,
    workers: int,
    pause: float = 3.0,
    longest: float = 60.0,
) -> list[Fault]:
    """Faults for so long, about `pause` seconds from one to the next. Without a `server` only processes fail, and the `disk` if it may."""
    dice = Random(f"{seed} faults")
    kinds = [
        kind
        for kind in _WEIGHTS
        if kind in _OF_PROCESSES or (server and kind in _OF_SERVERS) or (disk and kind == "fill disk")
    ]
    weights = [_WEIGHTS[kind] for kind in kinds]
    faults = []
    at = dice.uniform(1, 2)
    while at < seconds:
        (kind,) = dice.choices(kinds, weights)
        number = fronts if kind.endswith("front") else workers if kind.endswith("worker") else fronts + workers
        alone = kind in ("kill worker", "store away") and dice.random() < 0.5
        lasts = dice.uniform(0.3, min(longest, _LONGEST.get(kind, 3)))
        if alone:
            at = max([at, *(fault.at + fault.seconds + QUIET_SECONDS + 1 for fault in faults)])
        faults.append(Fault(at=at, kind=kind, target=dice.randrange(number), seconds=lasts, alone=alone))
        alone_seconds = _ALONE_SECONDS + (lasts if kind == "store away" else 0.0)
        at += max(alone_seconds if alone else 0.0, dice.expovariate(1 / pause))
    return faults
