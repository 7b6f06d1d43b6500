"""What agents and their callers talk about: tasks, messages, parts, artifacts. The core model is that of A2A 1.0.

These structs are at once the JSON of the 1.0 dialect (section 4 of the specification; its protobuf is normative): names in
camelCase, defaults left out, bytes in base64, enumerations by their names. Holds data and decides nothing.
"""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any, Final, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType

JsonObject: TypeAlias = dict[str, Any]  # Any: JSON that nobody here looks into
Name: TypeAlias = Annotated[str, Meta(min_length=1)]


class TaskState(Enum):
    """Where a task stands (4.1.3). `states` has the table of what may follow what."""

    SUBMITTED = "TASK_STATE_SUBMITTED"
    WORKING = "TASK_STATE_WORKING"
    INPUT_REQUIRED = "TASK_STATE_INPUT_REQUIRED"
    AUTH_REQUIRED = "TASK_STATE_AUTH_REQUIRED"
    COMPLETED = "TASK_STATE_COMPLETED"
    FAILED = "TASK_STATE_FAILED"
    CANCELED = "TASK_STATE_CANCELED"
    REJECTED = "TASK_STATE_REJECTED"


STATE_NUMBERS: Final = {
    TaskState.SUBMITTED: 1,
    TaskState.WORKING: 2,
    TaskState.COMPLETED: 3,
    TaskState.FAILED: 4,
    TaskState.CANCELED: 5,
    TaskState.INPUT_REQUIRED: 6,
    TaskState.REJECTED: 7,
    TaskState.AUTH_REQUIRED: 8,
}
"""The states by their numbers in A2A's protobuf."""


class Role(Enum):
    """Who speaks (4.1.5)."""

    USER = "ROLE_USER"
    AGENT = "ROLE_AGENT"


class Wire(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """How everything on the wire is written."""


class Part(Wire, frozen=True):
    """One piece of content (4.1.6): exactly one of `text`, `raw`, `url` and `data`; the dialects see to that.

    `data` is any JSON value, null too, and UNSET where the part is another kind.
    """

    text: str | None = None
    raw: bytes | None = None
    url: str | None = None
    data: Any | UnsetType = UNSET  # Any: JSON
    metadata: JsonObject | None = None
    filename: str | None = None
    media_type: str | None = None

    @property
    def contents(self) -> int:
        """How many of the four there are: one, where it is a part that anybody can read."""
        return (self.text is not None) + (self.raw is not None) + (self.url is not None) + (self.data is not UNSET)


class Message(Wire, frozen=True):
    """One turn of a conversation (4.1.4)."""

    message_id: Name
    role: Role
    parts: Annotated[tuple[Part, ...], Meta(min_length=1)]
    context_id: str | None = None
    task_id: str | None = None
    metadata: JsonObject | None = None
    extensions: tuple[str, ...] = ()
    reference_task_ids: tuple[str, ...] = ()


class TaskStatus(Wire, frozen=True):
    """A task's state, since when (RFC 3339, UTC, milliseconds), and what the agent said with it (4.1.2)."""

    state: TaskState
    message: Message | None = None
    timestamp: str | None = None


class Artifact(Wire, frozen=True):
    """An output of a task (4.1.7)."""

    artifact_id: Name
    parts: tuple[Part, ...]
    name: str | None = None
    description: str | None = None
    metadata: JsonObject | None = None
    extensions: tuple[str, ...] = ()


class Task(Wire, frozen=True):
    """A task at one moment (4.1.1). `history` is oldest first."""

    id: str
    context_id: str
    status: TaskStatus
    artifacts: tuple[Artifact, ...] = ()
    history: tuple[Message, ...] = ()
    metadata: JsonObject | None = None


class Created(msgspec.Struct, frozen=True, tag="created"):
    """The first event of every task."""

    task: Task


class MessageAdded(msgspec.Struct, frozen=True, tag="message"):
    """The client said something more."""

    message: Message


class StatusChanged(msgspec.Struct, frozen=True, omit_defaults=True, tag="status"):
    """The task has a new status; what the agent said with the one before belongs to the history now."""

    status: TaskStatus
    metadata: JsonObject | None = None


class ArtifactChanged(msgspec.Struct, frozen=True, omit_defaults=True, tag="artifact"):
    """A new artifact, or with `append` more parts of one that is there already."""

    artifact: Artifact
    append: bool = False
    last_chunk: bool = False
    metadata: JsonObject | None = None


Event: TypeAlias = Created | MessageAdded | StatusChanged | ArtifactChanged
"""What a task's log is made of."""


class Authentication(Wire, frozen=True):
    """How a push notification shows who sends it: the words of the `Authorization` header (4.3.2)."""

    scheme: Name
    credentials: str | None = None


class PushConfig(Wire, frozen=True):
    """Where the news of a task go (4.3.1). `token` is sent along, so that the receiver can tell."""

    url: Name
    id: str | None = None
    task_id: str | None = None
    token: str | None = None
    authentication: Authentication | None = None
    tenant: str | None = None


class SendConfiguration(Wire, frozen=True):
    """How the caller wants its answer (3.2.2). `history_length` None is all of it, 0 none."""

    accepted_output_modes: tuple[str, ...] | None = None
    task_push_notification_config: PushConfig | None = None
    history_length: Annotated[int, Meta(ge=0)] | None = None
    return_immediately: bool | None = None


class TaskPage(msgspec.Struct, frozen=True, rename="camel"):
    """One page of tasks, newest first (3.1.4). `next_page_token` is empty on the last."""

    tasks: tuple[Task, ...]
    next_page_token: str
    page_size: int
    total_size: int
