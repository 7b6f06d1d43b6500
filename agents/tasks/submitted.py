"""A message that was submitted for a task, and when its sender can be answered. Runs nothing.

What became of a message is told by the task's events alone. So it does not matter which daemon has executed it.
"""

from __future__ import annotations

from ...a2a.types import Message, Task
from ...errors.exceptions import FailureError
from ...errors.failures import Failure
from .live_task import LiveTask, raise_if_lost, wait_committed


class Submitted:
    """`position` is the place of the message in the task's history, and `accepted_generation` that of the event that put it
    there; None before. `refusal` is why it never comes there. `live.notify` is called after each change. `awaited` says that
    the sender waits for what becomes of it.
    """

    __slots__ = ("_accepted_generation", "_creates_task", "_position", "awaited", "live", "refusal")

    def __init__(self, live: LiveTask) -> None:
        self.live = live
        self._creates_task = not live.generation
        self._position: int | None = None
        self._accepted_generation: int | None = None
        self.refusal: Failure | None = None
        self.awaited = False

    @property
    def position(self) -> int | None:
        return 0 if self._creates_task and self.live.generation else self._position

    @property
    def accepted_generation(self) -> int | None:
        return 1 if self._creates_task and self.live.generation else self._accepted_generation

    def accept(self, position: int) -> None:
        """The message is at this place of the history, as of the task's present generation."""
        if self.live.lost is None:
            self._position, self._accepted_generation = position, self.live.generation
            self.live.notify()

    @property
    def stored(self) -> bool:
        """Whether the store has the message in the task's history."""
        return self.accepted_generation is not None and self.live.committed >= self.accepted_generation

    @property
    def over(self) -> bool:
        """Whether nothing more comes of the message, and the store has what came of it."""
        live, position = self.live, self.position
        if position is None or live.committed < live.generation:
            return False
        return live.ended or not live.waits(position)

    @property
    def reply(self) -> Message | None:
        """The agent's answer where there is no task."""
        return None

    def accept_new(self) -> None:
        """Begin a new task now, also where the agent might have answered without one: its sender does not wait."""

    async def wait_accepted(self) -> None:
        """Wait until the message was published. Raises `FailureError` or `TaskConflict` where it never will be."""
        while self.accepted_generation is None and not self.given_up:
            await self.live.wait_for_change()
        self.raise_refusal()

    async def wait_delegated(self) -> None:
        """Wait until the store has the message where it is left to another daemon; else return at once, without a pause.

        Raises as `wait_accepted`.
        """

    async def wait_stored(self) -> Task:
        """The task as it is now, once the store has it and what is to be done for it. Raises as `wait_accepted`."""
        return await wait_committed(self.live)

    @property
    def given_up(self) -> bool:
        """Whether the message came to nothing. `raise_refusal` says why."""
        return self.refusal is not None or self.live.lost is not None

    def raise_refusal(self) -> None:
        """Raise why the message came to nothing, if it did."""
        if self.refusal is not None:
            raise FailureError(self.refusal)
        raise_if_lost(self.live)

    @property
    def began(self) -> int | None:
        """The task's generation when the work on the message began, None before."""
        return None if self.position is None else self.live.begun.get(self.position)

    @property
    def stopped(self) -> bool:
        """Whether the work on the message has stopped the task, and the store has that."""
        live, start = self.live, self.began
        return start is not None and start < live.stop_generation <= live.committed

    @property
    def settled(self) -> bool:
        """Whether the sender can be answered."""
        return self.stopped or self.over or self.given_up or self.reply is not None

    async def wait_settled(self) -> Task | None:
        """Wait until the sender can be answered.

        Returns the task as it stopped, even if work on the next message has begun by now; None where this one did not stop it,
        as when the task ended before its turn. Raises `FailureError` or `TaskConflict` where the message was refused or the
        task is lost.
        """
        while not self.settled:
            await self.live.wait_for_change()
        self.raise_refusal()
        return self.live.stopped_task if self.stopped else None
