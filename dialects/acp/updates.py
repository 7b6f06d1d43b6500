"""A task's events as the updates of a session; content blocks as the parts of A2A, and back. Sends, reads and fetches nothing."""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, TypeAlias, assert_never, final

import msgspec
from msgspec import UNSET, ValidationError, to_builtins
from msgspec.structs import replace

from ...a2a.types import (
    INACTIVE,
    Artifact,
    ArtifactChanged,
    ExecutionBegun,
    JsonObject,
    Message,
    MessageAdded,
    MessageRefused,
    Part,
    Role,
    StatusChanged,
    StepStored,
    Task,
    TaskCreated,
    TaskEvent,
    TaskState,
    TaskStatus,
)
from ...errors.decoders import convert
from ...errors.exceptions import FailureError
from ...errors.failures import InvalidParams
from .generated.structs import (
    AgentMessageChunk,
    AgentThoughtChunk,
    AudioContent,
    BlobResourceContents,
    ContentBlock,
    CurrentModeUpdate,
    EmbeddedResource,
    ImageContent,
    Plan,
    ResourceLink,
    SessionInfoUpdate,
    SessionUpdate,
    SessionUpdateToolCallUpdate,
    Terminal,
    TextContent,
    TextResourceContents,
    ToolCall,
    ToolCallStatus,
    UsageUpdate,
    UserMessageChunk,
)


def parts_of(blocks: Iterable[ContentBlock]) -> tuple[Part, ...]:
    """The parts of a prompt. Text that the editor embeds stays text, with its URI in the part's metadata.

    Raises `FailureError(InvalidParams)` for data that is not base64, and for a prompt without blocks.
    """
    parts = tuple(_part(block, f"prompt[{index}]") for index, block in enumerate(blocks))
    if not parts:
        raise FailureError(InvalidParams("prompt", "at least one content block", "array"))
    return parts


def _part(block: ContentBlock, path: str) -> Part:
    match block:
        case TextContent():
            return Part(text=block.text)
        case ImageContent():
            raw = _bytes(block.data, f"{path}.data")
            return Part(raw=raw, media_type=block.mime_type, metadata=_about(block.uri))
        case AudioContent():
            return Part(raw=_bytes(block.data, f"{path}.data"), media_type=block.mime_type)
        case ResourceLink():
            return Part(url=block.uri, filename=block.name, metadata=_about(None, block.mime_type))
        case EmbeddedResource():
            resource = block.resource
            if isinstance(resource, TextResourceContents):
                return Part(text=resource.text, metadata=_about(resource.uri, resource.mime_type))
            raw = _bytes(resource.blob, f"{path}.resource.blob")
            return Part(raw=raw, media_type=resource.mime_type, metadata=_about(resource.uri))
        case _:
            assert_never(block)


def _about(uri: str | None, mime_type: str | None = None) -> JsonObject | None:
    """What a part has no member for. The type of a resource is told here: agents declare which types of files they take,
    and every agent of ACP takes links and embedded text.
    """
    said = {"uri": uri, "mimeType": mime_type}
    return {key: value for key, value in said.items() if value is not None} or None


def _bytes(data: str, path: str) -> bytes:
    try:
        return b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise FailureError(InvalidParams(path, "base64", "string")) from None


def block_of(part: Part) -> ContentBlock:
    """The content block that shows a part. Data becomes its JSON text."""
    about = part.metadata or {}
    uri, named = (given if isinstance(given := about.get(key), str) else None for key in ("uri", "mimeType"))
    media_type = part.media_type or named
    if part.text is not None:
        if uri is not None:
            return EmbeddedResource(resource=TextResourceContents(text=part.text, uri=uri, mime_type=media_type))
        return TextContent(text=part.text)
    if part.url is not None:
        return ResourceLink(uri=part.url, name=part.filename or part.url, mime_type=media_type)
    if part.data is not UNSET:
        return TextContent(text=msgspec.json.format(msgspec.json.encode(part.data)).decode())
    data = b64encode(part.raw or b"").decode("ascii")
    if media_type is not None and media_type.startswith("image/"):
        return ImageContent(data=data, mime_type=media_type, uri=uri)
    if media_type is not None and media_type.startswith("audio/"):
        return AudioContent(data=data, mime_type=media_type)
    uri = uri or f"attachment:{part.filename or 'file'}"
    return EmbeddedResource(resource=BlobResourceContents(blob=data, uri=uri, mime_type=media_type))


# Updates.


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
"""The artifact that holds what an editor was shown beside the task's own events: tool calls, plans, modes, titles, usage."""

_Recorded: TypeAlias = (
    ToolCall | SessionUpdateToolCallUpdate | Plan | CurrentModeUpdate | SessionInfoUpdate | UsageUpdate
)


def recorded(update: SessionUpdate) -> Artifact:
    """An update as a part of that artifact."""
    about = "Tool calls and plans, as the Agent Client Protocol writes them."
    return Artifact(SHOWN, (Part(data=to_builtins(update)),), name="Shown in the editor", description=about)


_SEPARATOR: Final = "\n\n"

Say: TypeAlias = Callable[[Chunk, str, Sequence[Part], bool], Iterable[SessionUpdate]]
"""Makes the updates that tell a message: as what, its id, its parts, and whether they are appended to what it has."""


@final
class Updates:
    """The updates of one turn, or of a session that is replayed. `task_id` is that of the task whose events come.

    In version 1 clients join the texts of chunks that follow each other. So another message of the same kind begins with an
    empty line. `say` is how another version tells messages, that of a failed task among them.
    """

    def __init__(self, *, replay: bool = False, say: Say | None = None) -> None:
        self.task_id = ""
        self._replay = replay
        self._say = say or self._chunks
        self._tells_failures = replay or say is not None
        self._last: tuple[Chunk, str] | None = None
        self._open_calls: dict[str, None] = {}

    def of(self, event: TaskEvent) -> Iterable[SessionUpdate]:
        """The updates that tell of one event, to be read before those of the next one. The client's own messages are told in a
        replay only.
        """
        match event:
            case ArtifactChanged():  # first: a stream of text is many of these
                return self._of_artifact(event.artifact, event.append)
            case MessageRefused():
                return ()
            case TaskCreated(task):
                return self._all_said(task.history) if self._replay else ()
            case MessageAdded(message):
                return self._said(message) if self._replay else ()
            case StatusChanged(status):
                return self._of_status(status)
            case ExecutionBegun() | StepStored():
                return ()
            case _:
                assert_never(event)

    def _of_status(self, status: TaskStatus) -> Iterable[SessionUpdate]:
        kind = _SHOWN.get(status.state, AgentMessageChunk if self._tells_failures else None)
        shown = None if kind is None else status.message
        if self._replay and status.state in INACTIVE:
            for call_id in self._open_calls:  # of calls that had not ended when the turn did
                yield SessionUpdateToolCallUpdate(tool_call_id=call_id, status=ToolCallStatus.FAILED)
            self._open_calls.clear()
        if kind is not None and shown is not None:
            yield from self._say(kind, shown.message_id, shown.parts, False)

    def _of_artifact(self, artifact: Artifact, append: bool) -> Iterable[SessionUpdate]:
        """Ids of artifacts are unique in their task, those of messages in the session."""
        if artifact.artifact_id != SHOWN:
            return self._say(AgentMessageChunk, f"{self.task_id}/{artifact.artifact_id}", artifact.parts, append)
        return self._shown_again(artifact) if self._replay else ()

    def _shown_again(self, artifact: Artifact) -> Iterator[SessionUpdate]:
        for part in artifact.parts:
            try:
                update: SessionUpdate = convert(part.data, _Recorded)
            except ValidationError:  # of another version
                continue
            if isinstance(update, ToolCall | SessionUpdateToolCallUpdate):
                if update.status in (ToolCallStatus.COMPLETED, ToolCallStatus.FAILED):
                    self._open_calls.pop(update.tool_call_id, None)
                else:
                    self._open_calls[update.tool_call_id] = None
                content = [each for each in update.content or () if not isinstance(each, Terminal)]  # they are gone
                update = replace(update, content=content or None)
            yield update

    def of_task(self, task: Task) -> Iterator[SessionUpdate]:
        """The updates that tell of a whole task, whose events are not there any more: what was said, then the results."""
        yield from self._all_said(task.history)
        for artifact in task.artifacts:
            yield from self._of_artifact(artifact, append=False)
        yield from self._of_status(task.status)

    def _all_said(self, messages: Iterable[Message]) -> Iterator[SessionUpdate]:
        for message in messages:
            yield from self._said(message)

    def _said(self, message: Message) -> Iterable[SessionUpdate]:
        kind = UserMessageChunk if message.role is Role.USER else AgentMessageChunk
        return self._say(kind, message.message_id, message.parts, False)

    def _chunks(self, kind: Chunk, message_id: str, parts: Sequence[Part], _append: bool) -> Iterable[SessionUpdate]:
        if len(parts) == 1:  # most of them: a stream of text needs no generators
            return (self._chunk(kind, message_id, parts[0]),)
        return (self._chunk(kind, message_id, part) for part in parts)

    def _chunk(self, kind: Chunk, message_id: str, part: Part) -> SessionUpdate:
        block = block_of(part)
        if isinstance(block, TextContent) and self._last is not None and self._last[0] is kind:
            separated = self._last[1] != message_id
            block = replace(block, text=_SEPARATOR + block.text) if separated else block
        self._last = kind, message_id
        return kind(content=block, message_id=message_id)
