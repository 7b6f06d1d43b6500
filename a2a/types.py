"""Tasks, messages, parts, artifacts and their events: the model of A2A 1.0. Holds data and decides nothing.

Encoded, these structs are the JSON of A2A 1.0 (section 4 of the specification; its protobuf is normative): names in camelCase,
defaults left out, bytes in base64, enumerations by their names.
"""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any, Final, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType

from ..daemon.operations.identity import Identity

JsonObject: TypeAlias = dict[str, Any]  # Any: JSON that the daemon does not read
NonEmptyStr: TypeAlias = Annotated[str, Meta(min_length=1)]
Count: TypeAlias = Annotated[int, Meta(ge=0)]


MAX_PAGE_SIZE: Final = 100
"""Tasks on one page of a list (3.1.4)."""


class TaskState(Enum):
    """The state of a task (4.1.3). `states` holds the table of transitions."""

    SUBMITTED = "TASK_STATE_SUBMITTED"
    WORKING = "TASK_STATE_WORKING"
    INPUT_REQUIRED = "TASK_STATE_INPUT_REQUIRED"
    AUTH_REQUIRED = "TASK_STATE_AUTH_REQUIRED"
    COMPLETED = "TASK_STATE_COMPLETED"
    FAILED = "TASK_STATE_FAILED"
    CANCELED = "TASK_STATE_CANCELED"
    REJECTED = "TASK_STATE_REJECTED"

    __hash__ = object.__hash__  # Enum's own is written in Python, and every event looks the state up


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
"""The number of each state in the protobuf of A2A, which is also that in the stores."""

STATES: Final = {number: state for state, number in STATE_NUMBERS.items()}


class Role(Enum):
    """The sender of a message (4.1.5)."""

    USER = "ROLE_USER"
    AGENT = "ROLE_AGENT"


class WireStruct(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Base of the structs that are read from the wire or written to it."""


class Part(WireStruct, frozen=True):
    """One piece of content (4.1.6): exactly one of `text`, `raw`, `url` and `data`, which the readers of `versions` check.

    `data` is any JSON value, null included, and UNSET in a part of another kind.
    """

    text: str | None = None
    raw: bytes | None = None
    url: str | None = None
    data: Any | UnsetType = UNSET  # Any: JSON
    metadata: JsonObject | None = None
    filename: str | None = None
    media_type: str | None = None

    @property
    def content_count(self) -> int:
        """How many of the four are set; 1 in a valid part."""
        return (self.text is not None) + (self.raw is not None) + (self.url is not None) + (self.data is not UNSET)


class Message(WireStruct, frozen=True):
    """One turn of a conversation (4.1.4)."""

    message_id: NonEmptyStr
    role: Role
    parts: Annotated[tuple[Part, ...], Meta(min_length=1)]
    context_id: str | None = None
    task_id: str | None = None
    metadata: JsonObject | None = None
    extensions: tuple[str, ...] = ()
    reference_task_ids: tuple[str, ...] = ()


class TaskStatus(WireStruct, frozen=True):
    """A task's state, the agent's message about it, and its time (4.1.2), as `timestamps` writes it."""

    state: TaskState
    message: Message | None = None
    timestamp: str | None = None


class Artifact(WireStruct, frozen=True):
    """An output of a task (4.1.7)."""

    artifact_id: NonEmptyStr
    parts: tuple[Part, ...]
    name: str | None = None
    description: str | None = None
    metadata: JsonObject | None = None
    extensions: tuple[str, ...] = ()


class Task(WireStruct, frozen=True):
    """A task at one moment (4.1.1). `history` is oldest first."""

    id: str
    context_id: str
    status: TaskStatus
    artifacts: tuple[Artifact, ...] = ()
    history: tuple[Message, ...] = ()
    metadata: JsonObject | None = None


class CallFacts(msgspec.Struct, frozen=True, omit_defaults=True):
    """The facts that an execution needs of the call that a message came with. Holds no credentials: the service params of the
    call, which may, stay with the daemon that was called.

    `key` tells the message from every other one where it goes through other daemons.
    """

    metadata: JsonObject | None = None
    accepted_output_modes: tuple[str, ...] | None = None
    extensions: tuple[str, ...] = ()
    identity: Identity | None = None
    key: str = ""


class WaitingMessage(msgspec.Struct, frozen=True, omit_defaults=True):
    """A message at this place of a task's history whose execution is not over. `begun` says that it has begun."""

    position: int
    call: CallFacts
    begun: bool = False


class TaskCreated(msgspec.Struct, frozen=True, omit_defaults=True, tag="created"):
    """The first event of every task. With a `call` its message is to be executed; `begun` says that this begins now."""

    task: Task
    call: CallFacts | None = None
    begun: bool = False


class MessageAdded(msgspec.Struct, frozen=True, omit_defaults=True, tag="message"):
    """The client sent another message. `call` and `begun` are as of `TaskCreated`."""

    message: Message
    call: CallFacts | None = None
    begun: bool = False


class ExecutionBegun(msgspec.Struct, frozen=True, tag="begun"):
    """A daemon begins, or resumes, the execution of the message at this place of the history; -1 where there is none."""

    position: int


class StatusChanged(msgspec.Struct, frozen=True, omit_defaults=True, tag="status"):
    """The task has a new status. The message of the previous status becomes part of the history.

    `cut_off` says that the task ends since the daemon that executed its message has gone.
    """

    status: TaskStatus
    metadata: JsonObject | None = None
    cut_off: bool = False


class ArtifactChanged(msgspec.Struct, frozen=True, omit_defaults=True, tag="artifact"):
    """A new artifact, which replaces one of the same id; with `append`, further parts of an existing one."""

    artifact: Artifact
    append: bool = False
    last_chunk: bool = False
    metadata: JsonObject | None = None


TaskEvent: TypeAlias = TaskCreated | MessageAdded | ExecutionBegun | StatusChanged | ArtifactChanged
"""An entry of a task's event log."""


class Authentication(WireStruct, frozen=True):
    """The `Authorization` header that a push notification carries (4.3.2)."""

    scheme: NonEmptyStr
    credentials: str | None = None


class PushConfig(WireStruct, frozen=True):
    """Where the push notifications of a task are sent (4.3.1). `token` is sent along, so that the receiver can check it."""

    url: NonEmptyStr
    id: str | None = None
    task_id: str | None = None
    token: str | None = None
    authentication: Authentication | None = None
    tenant: str | None = None


class SendConfiguration(WireStruct, frozen=True):
    """What the caller of a send asks for (3.2.2). `history_length` None is the whole history, 0 none of it."""

    accepted_output_modes: tuple[str, ...] | None = None
    task_push_notification_config: PushConfig | None = None
    history_length: Count | None = None
    return_immediately: bool | None = None
