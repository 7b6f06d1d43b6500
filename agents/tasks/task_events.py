"""What an executor publishes about its task: checks it and makes it an event of the task's log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias, final

import msgspec

from ...a2a.content import MAX_JSON_DEPTH, is_within_max_depth
from ...a2a.errors import InvalidStateTransition, MisplacedReplyError
from ...a2a.ids import new_id
from ...a2a.timestamps import now
from ...a2a.types import (
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
from ...lazy import anyio
from .live_task import LiveTask
from .status_messages import agent_message

Content: TypeAlias = str | Part | Sequence[Part]
"""Text, or at least one part."""

MAX_UNCOMMITTED: Final = 512
"""Events that an executor may be ahead of the store before it waits."""

WATCHER_WAIT_SECONDS: Final = 0.25
"""How long an executor waits for watchers that are far behind, before it may go twice as far."""

_TOO_DEEP: Final = f"JSON is nested at most {MAX_JSON_DEPTH} levels deep"


@final
class TaskEvents:
    """How an executor publishes events of its task. One per execution, to be used on its event loop until the execution ends.

    The methods raise `InvalidStateTransition` where the task's state forbids the event; a task that has ended takes none.
    They raise `FailureError(Overloaded)` where the daemon has no memory for what they publish.
    They raise `TypeError` for content that is not text or parts, and for metadata that is not a JSON object.

    Awaiting them waits while the executor is 512 events ahead of the store. It also waits for watchers that are far behind,
    0.25 s each time that 4, 8, 16 and 32 MiB of events are buffered for them.
    """

    __slots__ = ("_live", "_may_reply", "ended_task", "sent_reply")

    def __init__(self, live: LiveTask, *, may_reply: bool = False) -> None:
        self._live = live
        self._may_reply = may_reply
        self.ended_task = False
        self.sent_reply: Message | None = None

    @property
    def task(self) -> Task:
        """The task as it is now."""
        return self._live.task()

    @property
    def ended(self) -> bool:
        """Whether the task is completed, failed, rejected or canceled."""
        return self._live.ended

    async def working(self, content: Content | None = None, *, metadata: JsonObject | None = None) -> None:
        """Report progress."""
        await self.status(TaskState.WORKING, content, metadata=metadata)

    async def require_input(self, content: Content | None = None, *, metadata: JsonObject | None = None) -> None:
        """Let the task wait for another message of its caller."""
        await self.status(TaskState.INPUT_REQUIRED, content, metadata=metadata)

    async def require_auth(self, content: Content | None = None, *, metadata: JsonObject | None = None) -> None:
        """Let the task wait until its caller has authorised something."""
        await self.status(TaskState.AUTH_REQUIRED, content, metadata=metadata)

    async def complete(self, content: Content | None = None, *, metadata: JsonObject | None = None) -> None:
        """End the task with success."""
        await self.status(TaskState.COMPLETED, content, metadata=metadata)

    async def fail(self, content: Content | None = None, *, metadata: JsonObject | None = None) -> None:
        """End the task without its result."""
        await self.status(TaskState.FAILED, content, metadata=metadata)

    async def reject(self, content: Content | None = None, *, metadata: JsonObject | None = None) -> None:
        """End the task because the agent does not accept it."""
        await self.status(TaskState.REJECTED, content, metadata=metadata)

    async def cancel(self, content: Content | None = None, *, metadata: JsonObject | None = None) -> None:
        """End the task as canceled."""
        await self.status(TaskState.CANCELED, content, metadata=metadata)

    async def status(
        self, state: TaskState, content: Content | None = None, *, metadata: JsonObject | None = None
    ) -> None:
        """Give the task a new status, with a message for its caller. The state may be the one that the task has."""
        if not isinstance(state, TaskState):
            raise TypeError(f"the state is a member of TaskState, such as TaskState.WORKING, not {state!r}")
        self._begin()
        _check(metadata)
        message = None if content is None else agent_message(self._live, _parts(content))
        self._live.publish(StatusChanged(TaskStatus(state, message, now()), metadata), limited=True)
        self.ended_task = self._live.ended
        await self._apply_backpressure()

    async def artifact(
        self,
        content: Content,
        *,
        artifact_id: str | None = None,
        name: str | None = None,
        description: str | None = None,
        append: bool = False,
        last_chunk: bool = False,
        metadata: JsonObject | None = None,
    ) -> str:
        """Publish a part of the result; returns the artifact's id.

        With `append` the parts are added to the artifact of that id, which is created where there is none; without it they
        replace its parts. `last_chunk` says that nothing will be appended any more.
        """
        self._begin()
        identity = artifact_id or new_id()
        _check(metadata, identity, name, description)
        artifact = Artifact(identity, _parts(content), name, description, metadata)
        self._live.publish(ArtifactChanged(artifact, append, last_chunk), limited=True)
        await self._apply_backpressure()
        return identity

    async def reply(self, content: Content) -> None:
        """Answer a message that names no task, without a task. Where its sender does not wait there is a task already, which
        this completes.

        Raises `MisplacedReplyError` after any other event and after another reply, for a message to a task, and where the
        agent is not declared with `replies_without_task=True`.
        """
        if not self._may_reply:
            raise MisplacedReplyError(
                "only an agent that is declared with replies_without_task=True may reply: once, before any event, to a"
                " message that names no task; others `await events.complete(…)`"
            )
        self._may_reply = False
        if self._live.generation:
            return await self.complete(content)
        self.sent_reply = Message(new_id(), Role.AGENT, _parts(content), context_id=self._live.context_id)
        self._live.notify()

    def _begin(self) -> None:
        """An event comes: there is a task from now on."""
        self._may_reply = False
        self._live.ensure_created()

    async def _apply_backpressure(self) -> None:
        live = self._live
        while len(live.pending) >= MAX_UNCOMMITTED and live.lost is None:
            await live.wait_for_change()
        if live.buffer.congested:
            await self._wait_for_watchers()

    async def _wait_for_watchers(self) -> None:
        live = self._live
        with anyio.move_on_after(WATCHER_WAIT_SECONDS):
            while live.buffer.congested and live.lost is None:
                await live.wait_for_change()
        if live.buffer.congested:
            live.buffer.raise_backpressure_limit()


def was_overtaken(events: TaskEvents, fault: BaseException | None) -> bool:
    """Whether this fault only says that somebody else had ended the task: a cancellation, or the execution that was to be
    cancelled. The agent can't prevent that."""
    overtaken = issubclass(type(fault), InvalidStateTransition)  # `isinstance` asks the object itself too
    return overtaken and events.ended and not events.ended_task


def _parts(content: Content) -> tuple[Part, ...]:
    """The parts of what an executor gave, which may be of any type at run time. Raises `TypeError`."""
    if isinstance(content, str):
        return (Part(text=content),)
    parts = (content,) if isinstance(content, Part) else tuple(content)
    if not (parts and all(map(_is_part, parts))):
        raise TypeError("content is text, or at least one Part, each with exactly one of text, raw, url and data")
    return parts


def _is_part(part: object) -> bool:
    """Whether it is a part with exactly one content (A2A 1.0 section 4.1.6). Raises `TypeError` for members of wrong types."""
    if not isinstance(part, Part):
        return False
    _check(part.metadata, part.text, part.url, part.filename, part.media_type)
    if not is_within_max_depth(part.data):
        raise TypeError(_TOO_DEEP)
    return part.content_count == 1 and isinstance(part.raw, bytes | None)


def _check(metadata: object, *strings: object) -> None:
    """Raises `TypeError` for metadata that are not a JSON object, and for strings that are not `str`; each may be None."""
    for string in strings:
        if string is not None and not isinstance(string, str):
            raise TypeError("texts, names, URLs and media types are of the type str")
    if metadata is not None:
        if not isinstance(metadata, dict):
            raise TypeError(f"metadata is a dict, not {type(metadata).__name__}")
        if not is_within_max_depth(metadata):
            raise TypeError(_TOO_DEEP)
        msgspec.json.encode(metadata)
