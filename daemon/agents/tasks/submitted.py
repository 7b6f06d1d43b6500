"""A message that was submitted for a task, and when its sender can be answered. Runs nothing."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ....errors.exceptions import FailureError
from ....errors.failures import Failure
from ..model.types import Message, Task
from .live_task import LiveTask, raise_if_lost, wait_committed


class Submitted(ABC):
    """`refusal` is why the work on the message never begins. `live.notify` is called after each change."""

    __slots__ = ("live", "refusal", "start_generation")

    def __init__(self, live: LiveTask) -> None:
        self.live = live
        self.start_generation: int | None = None
        self.refusal: Failure | None = None

    @property
    @abstractmethod
    def accepted_generation(self) -> int | None:
        """The generation of the event that put the message into the task's history, None before."""

    @property
    @abstractmethod
    def over(self) -> bool:
        """Whether nothing more comes of the message, and the store has what came of it."""

    @property
    def reply(self) -> Message | None:
        """The agent's answer where there is no task."""
        return None

    def accept_new(self) -> None:  # noqa: B027 - only an agent that may answer without a task has something to do
        """Begin a new task now, also where the agent might have answered without one: its sender does not wait."""

    async def wait_accepted(self) -> None:
        """Wait until the message was published. Raises `FailureError` or `TaskConflict` where it never will be."""
        while self.accepted_generation is None and not self.given_up:
            await self.live.wait_for_change()
        self.raise_refusal()

    async def wait_delegated(self) -> None:  # noqa: B027 - only a message for another daemon has something to wait for
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
        return self.start_generation

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
