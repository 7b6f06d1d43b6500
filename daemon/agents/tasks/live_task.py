"""One task that is being worked on or watched: its working copy, what the store has of it, and who watches.

An event counts from the moment it is published, but nobody is told of it before the store has it. Never waits for a
watcher: who falls behind what is kept here reads on in the store, or is told that it has missed something.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, final

from ..model.draft import Draft
from ..model.states import INTERRUPTED, RESTING, TERMINAL, may_follow
from ..model.types import Event, StatusChanged, Task, TaskState
from ..stores.interface import Change, Logged, PushTarget
from .event_buffer import Budget, EventBuffer, size_of
from .executor import InvalidStateTransition

if TYPE_CHECKING:
    import anyio

    from .runner import Execution

Lost: TypeAlias = Literal["conflict", "behind", "full", "unstorable", "failed"]
"""Another daemon was faster, or so much faster that its events are not kept any more; the store has no room; what the agent
said is no JSON; the store failed."""

_SNAPSHOT_BYTES: Final = 1024 * 1024


@final
class LiveTask:
    """A task in memory. `generation` is the number of its last event, `committed` of the last that the store has.

    `rested` is the generation of the last event that ended the task or made it wait, 0 where there was none since it came
    into memory, and `at_rest` the task as of then. `runs` are the executions that it has and will have, the first of them
    under way; `users` counts who needs it in memory. `keeper` is another daemon that works on it, empty where it is not
    known which, `taken_from` one that did and is no more. `lost` says why nothing can be published any more.
    """

    __slots__ = (
        "_changed",
        "_draft",
        "_on_publish",
        "_snapshot_bytes",
        "_unsaved",
        "at_rest",
        "committed",
        "generation",
        "keeper",
        "kept",
        "lost",
        "owner",
        "pending",
        "rested",
        "runs",
        "scope",
        "taken_from",
        "targets",
        "users",
        "watchers",
    )

    def __init__(
        self,
        task: Task,
        generation: int,
        scope: str,
        owner: str,
        on_publish: Callable[[LiveTask], None],
        budget: Budget | None = None,
    ) -> None:
        self._draft = Draft(task)
        self._on_publish = on_publish
        self._changed: anyio.Event | None = None
        self._snapshot_bytes = _SNAPSHOT_BYTES
        self._unsaved = 0
        self.scope = scope
        self.owner = owner
        self.generation = generation
        self.committed = generation
        self.rested = 0
        self.at_rest: Task | None = None
        self.keeper: str | None = None
        self.taken_from: str | None = None
        self.lost: Lost | None = None
        self.runs: deque[Execution] = deque()
        self.users = 0
        self.kept = EventBuffer(generation, budget or Budget())
        self.pending: list[Event] = []
        self.watchers: set[Watcher] = set()
        self.targets: Sequence[PushTarget] = ()

    @property
    def id(self) -> str:
        return self._draft.id

    @property
    def context_id(self) -> str:
        return self._draft.context_id

    @property
    def state(self) -> TaskState:
        return self._draft.status.state

    @property
    def foreign(self) -> bool:
        return self.keeper is not None

    @property
    def shared(self) -> bool:
        """Whether another daemon may change it: because that one works on it, or because nobody does."""
        return self.foreign or (self.state in INTERRUPTED and not (self.pending or self.runs))

    @property
    def ended(self) -> bool:
        return self.state in TERMINAL

    def task(self) -> Task:
        """The task as of `generation`."""
        return self._draft.freeze()

    # -- what happens to it ------------------------------------------------------------------------------------

    def publish(self, event: Event) -> None:
        """Append an event. Raises `InvalidStateTransition` for what the table of states does not allow, and `TypeError` or
        `ValueError` for what is no JSON.

        What is published of a task that is lost goes nowhere.
        """
        self._check(event)
        if self.lost is not None:
            return
        self._take(event, size_of(event))
        self.pending.append(event)
        self._on_publish(self)

    def follow(self, logged: Logged) -> None:
        """Take an event that another daemon has published and the store has."""
        self._take(logged.event, size_of(logged.event))
        self.committed = self.generation
        self.wake()

    def _check(self, event: Event) -> None:
        current = self.state
        target = event.status.state if isinstance(event, StatusChanged) else None
        if (current in TERMINAL) if target is None else not may_follow(current, target):
            raise InvalidStateTransition(current=current.value, target=(target or current).value)

    def _take(self, event: Event, size: int) -> None:
        self._draft.apply(event)
        self.generation += 1
        self._unsaved += size
        if isinstance(event, StatusChanged) and event.status.state in RESTING:
            self.rested = self.generation
            self.at_rest = self.task()
        if self.watchers:
            self.kept.add(Logged(self.generation, event), size)

    def wake(self) -> None:
        """Tell everybody who waits that something is different."""
        if self._changed is not None:
            self._changed.set()
            self._changed = None

    async def changed(self) -> None:
        """Wait until something is different; what, the caller looks up."""
        import anyio  # late: the first replies leave without an event loop

        if self._changed is None:
            self._changed = anyio.Event()
        await self._changed.wait()

    # -- what the store gets -----------------------------------------------------------------------------------

    def change(self) -> Change:
        """Everything that the store does not have yet, as one change."""
        resting = self.state in RESTING
        new = self.committed == 0
        snapshot = None
        if new or resting or self._unsaved > self._snapshot_bytes:
            snapshot = self.task()
            self._snapshot_bytes += self._unsaved  # so that the work of all snapshots stays linear
            self._unsaved = 0
        return Change(
            task_id=self.id,
            expected=self.committed,
            events=tuple(self.pending),
            scope=self.scope,
            context_id=self.context_id,
            state=self.state,
            updated=self._draft.status.timestamp or "",
            owner=None if resting else self.owner,
            snapshot=snapshot,
            taken_from=self.taken_from,
        )

    def took(self, change: Change) -> None:
        """The store has it."""
        del self.pending[: len(change.events)]
        self.committed = change.generation
        self.taken_from = None
        self.wake()

    def lose(self, why: Lost) -> None:
        """The store does not take it, for good."""
        self.lost = why
        self.pending.clear()
        self.wake()

    def claim(self, taken_from: str | None) -> None:
        """It is this daemon's now, after one that is no more: the store is told, whatever else there is to be said."""
        self.taken_from = taken_from
        self._on_publish(self)
        self.wake()

    def interrupt(self) -> None:
        """Cancel the execution that is under way, if one is."""
        if self.runs and self.runs[0].scope is not None:
            self.runs[0].scope.cancel()

    # -- watching ----------------------------------------------------------------------------------------------

    def watch(self) -> Watcher:
        """Keep what comes from now on, until `Watcher.close`."""
        watcher = Watcher(self)
        if not self.watchers:
            self.kept.clear(self.generation)
        self.watchers.add(watcher)
        return watcher

    def unwatch(self, watcher: Watcher) -> None:
        self.watchers.discard(watcher)
        self.seen()

    def seen(self) -> None:
        """Let go of what every watcher has seen."""
        if not self.watchers:
            self.kept.clear(self.generation)
        elif self.kept.forget(min(watcher.position for watcher in self.watchers)):
            self.wake()


@final
class Watcher:
    """Someone's place in a task's log: `position` is the last event that was taken."""

    __slots__ = ("live", "position")

    def __init__(self, live: LiveTask) -> None:
        self.live = live
        self.position = live.generation

    def take(self, most: int = 64) -> list[Logged] | None:
        """The next events, none if there are none yet; None where they are not kept any more."""
        found = self.live.kept.between(self.position, self.live.committed, most)
        if found:
            self.position = found[-1].generation
            self.live.seen()
        return found

    def close(self) -> None:
        self.live.unwatch(self)
