"""What an executor says of its task: every word becomes an event in the task's log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias, final

import msgspec

from ..model.content import DEEPEST, is_shallow
from ..model.ids import new_id, now
from ..model.types import (
    Artifact,
    ArtifactChanged,
    JsonObject,
    Message,
    Part,
    Role,
    StatusChanged,
    Task,
    TaskState,
    TaskStatus,
)
from .live_task import LiveTask

Said: TypeAlias = str | Part | Sequence[Part]
"""Text, or parts."""

MOST_UNCOMMITTED: Final = 512
"""Events that an executor may be ahead of the store before it waits."""

PATIENCE_SECONDS: Final = 0.25
"""How long an executor that is far ahead of its watchers waits for them, before it goes twice as far."""


DEEP: Final = f"JSON is nested at most {DEEPEST} levels deep"


class MisplacedReplyError(RuntimeError):
    """`reply` is for an agent that has said nothing else of its task."""


@final
class TaskEvents:
    """The agent's voice. One per execution; every method may be awaited at any time until the execution ends.

    They raise `InvalidStateTransition` for what a task in its state can't do, such as anything at all once it has ended.
    Awaiting them waits for the store when an executor is far ahead of it, and a moment for watchers that are far behind: a slow
    one delays it four times, by a quarter of a second.
    """

    __slots__ = ("_begin", "_live", "replied")

    def __init__(self, live: LiveTask, begin: Callable[[], None]) -> None:
        self._live = live
        self._begin = begin
        self.replied: Message | None = None

    @property
    def task(self) -> Task:
        """The task as it is now."""
        return self._live.task()

    @property
    def ended(self) -> bool:
        """Whether the task has a final state."""
        return self._live.ended

    async def working(self, said: Said | None = None, *, metadata: JsonObject | None = None) -> None:
        """The work goes on."""
        await self.status(TaskState.WORKING, said, metadata=metadata)

    async def require_input(self, said: Said | None = None, *, metadata: JsonObject | None = None) -> None:
        """The task waits for another message of its caller."""
        await self.status(TaskState.INPUT_REQUIRED, said, metadata=metadata)

    async def require_auth(self, said: Said | None = None, *, metadata: JsonObject | None = None) -> None:
        """The task waits until its caller has authorised something."""
        await self.status(TaskState.AUTH_REQUIRED, said, metadata=metadata)

    async def complete(self, said: Said | None = None, *, metadata: JsonObject | None = None) -> None:
        """The task has ended well."""
        await self.status(TaskState.COMPLETED, said, metadata=metadata)

    async def fail(self, said: Said | None = None, *, metadata: JsonObject | None = None) -> None:
        """The task has ended without its result."""
        await self.status(TaskState.FAILED, said, metadata=metadata)

    async def reject(self, said: Said | None = None, *, metadata: JsonObject | None = None) -> None:
        """The agent does not take the task."""
        await self.status(TaskState.REJECTED, said, metadata=metadata)

    async def cancel(self, said: Said | None = None, *, metadata: JsonObject | None = None) -> None:
        """The task is canceled."""
        await self.status(TaskState.CANCELED, said, metadata=metadata)

    async def status(self, state: TaskState, said: Said | None = None, *, metadata: JsonObject | None = None) -> None:
        """Give the task a new state, with what the agent says to it. Saying the same state again is allowed."""
        self._begin()
        _check(metadata)
        message = None if said is None else spoken(self._live, _parts(said))
        self._live.publish(StatusChanged(TaskStatus(state, message, now()), metadata))
        await self._keep_up()

    async def artifact(
        self,
        content: Said,
        *,
        artifact_id: str | None = None,
        name: str | None = None,
        description: str | None = None,
        append: bool = False,
        last_chunk: bool = False,
        metadata: JsonObject | None = None,
    ) -> str:
        """Give out a part of the result; returns the artifact's id.

        With `append` the parts go to the end of the artifact of that id, which is made when there is none; without it they
        replace it. `last_chunk` tells that nothing will be appended any more.
        """
        self._begin()
        identity = artifact_id or new_id()
        _check(metadata, identity, name, description)
        artifact = Artifact(identity, _parts(content), name, description, metadata)
        self._live.publish(ArtifactChanged(artifact, append, last_chunk))
        await self._keep_up()
        return identity

    async def reply(self, said: Said) -> None:
        """Answer at once, without a task. Raises `MisplacedReplyError` when there is a task already."""
        if self._live.generation or self.replied is not None:
            raise MisplacedReplyError("an agent replies before it says anything of a task, and once")
        self.replied = Message(new_id(), Role.AGENT, _parts(said), context_id=self._live.context_id)
        self._live.wake()

    async def _keep_up(self) -> None:
        live = self._live
        while len(live.pending) >= MOST_UNCOMMITTED and live.lost is None:
            await live.changed()
        if live.kept.ahead:
            await self._wait_for_watchers()

    async def _wait_for_watchers(self) -> None:
        import anyio  # late: the first replies leave without an event loop

        live = self._live
        with anyio.move_on_after(PATIENCE_SECONDS):
            while live.kept.ahead and live.lost is None:
                await live.changed()
        if live.kept.ahead:
            live.kept.let_ahead()


def spoken(live: LiveTask, parts: tuple[Part, ...]) -> Message:
    """Something that the agent says of its task."""
    return Message(new_id(), Role.AGENT, parts, context_id=live.context_id, task_id=live.id)


def _parts(said: Said) -> tuple[Part, ...]:
    """What an agent says, if callers can read it: types are no more than a promise. Raises `TypeError`."""
    if isinstance(said, str):
        return (Part(text=said),)
    parts = (said,) if isinstance(said, Part) else tuple(said)
    if not (parts and all(map(_is_part, parts))):
        raise TypeError("an agent says text, or at least one Part, each of text, raw bytes, a url or data")
    return parts


def _is_part(part: object) -> bool:
    """Whether it has one content, and all of it is of the type that it should be (A2A 1.0 section 4.1.6)."""
    if not isinstance(part, Part):
        return False
    _check(part.metadata, part.text, part.url, part.filename, part.media_type)
    if not is_shallow(part.data):
        raise TypeError(DEEP)
    return part.contents == 1 and isinstance(part.raw, bytes | None)


def _check(metadata: object, *words: object) -> None:
    """Raises `TypeError` for metadata that are no JSON object, and words that are no text; each may be None."""
    for word in words:
        if not isinstance(word, str | None):
            raise TypeError("texts, names, URLs and media types are of the type str")
    if metadata is not None:
        if not isinstance(metadata, dict):
            raise TypeError("metadata are a dict")
        if not is_shallow(metadata):
            raise TypeError(DEEP)
        msgspec.json.encode(metadata)
