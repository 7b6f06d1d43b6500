"""A task's events as the updates of a session. Sends nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeAlias, assert_never, final

from msgspec import ValidationError, to_builtins
from msgspec.structs import replace

from ...a2a.types import (
    INACTIVE,
    Artifact,
    ArtifactChanged,
    ExecutionBegun,
    Message,
    MessageAdded,
    Part,
    Role,
    StatusChanged,
    Task,
    TaskCreated,
    TaskEvent,
    TaskState,
)
from ...errors.decoders import convert
from .content import block_of
from .generated.structs import (
    AgentMessageChunk,
    AgentThoughtChunk,
    CurrentModeUpdate,
    Plan,
    SessionUpdate,
    SessionUpdateToolCallUpdate,
    Terminal,
    TextContent,
    ToolCall,
    ToolCallStatus,
    UserMessageChunk,
)

Chunk = type[UserMessageChunk] | type[AgentMessageChunk] | type[AgentThoughtChunk]

_SHOWN: Final[dict[TaskState, Chunk]] = {
    TaskState.SUBMITTED: AgentThoughtChunk,
    TaskState.WORKING: AgentThoughtChunk,
    TaskState.INPUT_REQUIRED: AgentMessageChunk,
    TaskState.AUTH_REQUIRED: AgentMessageChunk,
    TaskState.COMPLETED: AgentMessageChunk,
    TaskState.CANCELED: AgentMessageChunk,
    TaskState.REJECTED: AgentMessageChunk,
}
"""As what the message of a status is shown. That of a failed task is the error that answers the prompt."""

SHOWN: Final = "shown-in-the-editor"
"""The artifact that holds what an editor was shown beside the task's own events: tool calls, plans, modes."""

_Recorded: TypeAlias = ToolCall | SessionUpdateToolCallUpdate | Plan | CurrentModeUpdate


def recorded(update: SessionUpdate) -> Artifact:
    """An update as a part of that artifact."""
    about = "Tool calls and plans, as the Agent Client Protocol writes them."
    return Artifact(SHOWN, (Part(data=to_builtins(update)),), name="Shown in the editor", description=about)


_SEPARATOR: Final = "\n\n"


@final
class Updates:
    """The updates of one turn, or of a session that is replayed.

    Clients join the texts of chunks that follow each other. So another message of the same kind begins with an empty line.
    """

    def __init__(self, *, replay: bool = False) -> None:
        self._replay = replay
        self._last: tuple[Chunk, str] | None = None
        self._open_calls: dict[str, None] = {}

    def of(self, event: TaskEvent) -> Iterator[SessionUpdate]:
        """The updates that tell of one event. The client's own messages are told in a replay only."""
        match event:
            case ArtifactChanged():  # first: a stream of text is many of these
                yield from self._of_artifact(event.artifact)
            case TaskCreated(task):
                if self._replay:
                    for message in task.history:
                        yield from self._said(message)
            case MessageAdded(message):
                if self._replay:
                    yield from self._said(message)
            case StatusChanged(status):
                if self._replay and status.state in INACTIVE:
                    yield from self._failed()
                kind = _SHOWN.get(status.state, AgentMessageChunk if self._replay else None)
                if kind is not None and status.message is not None:
                    yield from self._chunks(kind, status.message.message_id, status.message.parts)
            case ExecutionBegun():
                pass
            case _:
                assert_never(event)

    def _of_artifact(self, artifact: Artifact) -> Iterator[SessionUpdate]:
        if artifact.artifact_id != SHOWN:
            yield from self._chunks(AgentMessageChunk, artifact.artifact_id, artifact.parts)
        elif self._replay:
            for part in artifact.parts:
                yield from self._shown_again(part.data)

    def _shown_again(self, given: Any) -> Iterator[SessionUpdate]:  # Any: JSON
        try:
            update: SessionUpdate = convert(given, _Recorded)
        except ValidationError:  # of another version
            return
        if isinstance(update, ToolCall | SessionUpdateToolCallUpdate):
            if update.status in (ToolCallStatus.COMPLETED, ToolCallStatus.FAILED):
                self._open_calls.pop(update.tool_call_id, None)
            else:
                self._open_calls[update.tool_call_id] = None
            content = [each for each in update.content or () if not isinstance(each, Terminal)]  # they are gone
            update = replace(update, content=content or None)
        yield update

    def _failed(self) -> Iterator[SessionUpdate]:
        """The updates for calls that had not ended when the turn did."""
        for call_id in self._open_calls:
            yield SessionUpdateToolCallUpdate(tool_call_id=call_id, status=ToolCallStatus.FAILED)
        self._open_calls.clear()

    def of_task(self, task: Task) -> Iterator[SessionUpdate]:
        """The updates that tell of a whole task, whose events are not there any more: what was said, then the results."""
        for message in task.history:
            yield from self._said(message)
        for artifact in task.artifacts:
            yield from self._of_artifact(artifact)
        yield from self.of(StatusChanged(task.status))

    def _said(self, message: Message) -> Iterator[SessionUpdate]:
        kind = UserMessageChunk if message.role is Role.USER else AgentMessageChunk
        yield from self._chunks(kind, message.message_id, message.parts)

    def _chunks(self, kind: Chunk, message_id: str, parts: Sequence[Part]) -> Iterator[SessionUpdate]:
        for part in parts:
            block = block_of(part)
            if isinstance(block, TextContent) and self._last is not None and self._last[0] is kind:
                separated = self._last[1] != message_id
                block = replace(block, text=_SEPARATOR + block.text) if separated else block
            self._last = kind, message_id
            yield kind(content=block, message_id=message_id)
