"""The model of A2A 1.0: tasks, messages, events, the table of states, requests, identifiers and timestamps. Holds data.

Encoded, these structs are the JSON of A2A 1.0 (section 4 of the specification; its protobuf is normative): names in camelCase,
defaults left out, bytes in base64, enumerations by their names.
"""

from __future__ import annotations

import os
import re
import time
from _blake2 import blake2b  # that of `hashlib`, which loads OpenSSL, too: some milliseconds of the first call
from datetime import UTC, datetime, timedelta
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
    """The state of a task (4.1.3). `TRANSITIONS` is the table of the states that may follow."""

    SUBMITTED = "TASK_STATE_SUBMITTED"
    WORKING = "TASK_STATE_WORKING"
    INPUT_REQUIRED = "TASK_STATE_INPUT_REQUIRED"
    AUTH_REQUIRED = "TASK_STATE_AUTH_REQUIRED"
    COMPLETED = "TASK_STATE_COMPLETED"
    FAILED = "TASK_STATE_FAILED"
    CANCELED = "TASK_STATE_CANCELED"
    REJECTED = "TASK_STATE_REJECTED"

    __hash__ = object.__hash__  # Enum's own is written in Python, and every event looks the state up

    @property
    def word(self) -> str:
        """The name for operators, as metrics and 0.3 have it: `input-required`."""
        return self.name.lower().replace("_", "-")


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
    """One piece of content (4.1.6): exactly one of `text`, `raw`, `url` and `data`. The readers of `version` check that.

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
        """The number of members that are set among the four; 1 in a valid part."""
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
    """A task's state, the agent's message about it, and its time (4.1.2), as `now` writes it."""

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
    """The facts of the call of a message that its execution needs. Holds no credentials: service params stay with the daemon
    that was called.

    `key` identifies the message while it goes through other daemons. `traceparent` names the span in which it was sent (W3C Trace
    Context), where spans are recorded.
    """

    metadata: JsonObject | None = None
    accepted_output_modes: tuple[str, ...] | None = None
    extensions: tuple[str, ...] = ()
    identity: Identity | None = None
    key: str = ""
    traceparent: str = ""


class Step(msgspec.Struct, frozen=True, omit_defaults=True):
    """A step of an execution, by its name. `result` is its result as JSON text, None while it has none. It has failed `failures`
    times so far, and is due again at the time `due`, in seconds since 1970. `answer` is the place of the message that answers
    it in the history."""

    name: str
    result: bytes | None = None
    failures: int = 0
    due: float = 0.0
    answer: int | None = None


class FirstMessage(msgspec.Struct, frozen=True):
    """The message that an execution began with, where another one has answered its question since."""

    position: int
    call: CallFacts


class WaitingMessage(msgspec.Struct, frozen=True, omit_defaults=True):
    """A message of a task's history whose execution is not over; `position` is its place. `begun` says that the execution has
    begun; `steps` are those that it has stored.

    One that `asks`, by the name of a step, waits for the answer: the next message of the task, whose execution gets its
    `steps` and has it as its `first` message.
    """

    position: int
    call: CallFacts
    begun: bool = False
    steps: tuple[Step, ...] = ()
    asks: str = ""
    first: FirstMessage | None = None


class TaskCreated(msgspec.Struct, frozen=True, omit_defaults=True, tag="created"):
    """The first event of every task. With a `call` its message is to be executed; `begun` says that the execution begins now."""

    task: Task
    call: CallFacts | None = None
    begun: bool = False


class MessageAdded(msgspec.Struct, frozen=True, omit_defaults=True, tag="message"):
    """The client sent another message. `call` and `begun` are as in `TaskCreated`."""

    message: Message
    call: CallFacts | None = None
    begun: bool = False


class MessageRefused(msgspec.Struct, frozen=True, omit_defaults=True, tag="refused"):
    """The daemon that works on the task does not take the message of this key, which another daemon left to it. `error` has the
    fields of a declared error; None for any other reason."""

    key: str
    error: JsonObject | None = None


class ExecutionBegun(msgspec.Struct, frozen=True, tag="begun"):
    """A daemon begins, or resumes, the execution of the message at this place of the history; -1 for none."""

    position: int


class StepStored(msgspec.Struct, frozen=True, tag="step"):
    """The execution that has begun stores a step, in the place of an earlier one of the same name."""

    step: Step


class StatusChanged(msgspec.Struct, frozen=True, omit_defaults=True, tag="status"):
    """The task has a new status. The message of the previous status becomes part of the history.

    `cut_off` says that the task ends because the daemon that executed its message has gone. With `asks`, the name of a step, the
    execution waits for an answer.
    """

    status: TaskStatus
    metadata: JsonObject | None = None
    cut_off: bool = False
    asks: str = ""


class ArtifactChanged(msgspec.Struct, frozen=True, omit_defaults=True, tag="artifact"):
    """A new artifact, which replaces one of the same id; with `append`, further parts of an existing one."""

    artifact: Artifact
    append: bool = False
    last_chunk: bool = False
    metadata: JsonObject | None = None


TaskEvent: TypeAlias = (
    TaskCreated | MessageAdded | MessageRefused | ExecutionBegun | StepStored | StatusChanged | ArtifactChanged
)
"""An entry of a task's event log."""


class Authentication(WireStruct, frozen=True):
    """The `Authorization` header that a push notification carries (4.3.2)."""

    scheme: NonEmptyStr
    credentials: str | None = None


class PushConfig(WireStruct, frozen=True):
    """The address for the push notifications of a task (4.3.1). `token` is sent along, so that the receiver can check it."""

    url: NonEmptyStr
    id: str | None = None
    task_id: str | None = None
    token: str | None = None
    authentication: Authentication | None = None
    tenant: str | None = None


class SendConfiguration(WireStruct, frozen=True):
    """The options of a message (3.2.2). `history_length` None is the whole history, 0 none of it."""

    accepted_output_modes: tuple[str, ...] | None = None
    task_push_notification_config: PushConfig | None = None
    history_length: Count | None = None
    return_immediately: bool | None = None


_UUID: Final = r"[0-9a-f]{8}-[0-9a-f]{4}-[48][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"


def new_id() -> str:
    """Make a random UUID (RFC 9562, version 4). Does without `uuid`, whose import alone costs more than a task."""
    return _uuid(os.urandom(16).hex(), "4")


def derived_ids(scope: str, message_id: str) -> tuple[str, str]:
    """Make the ids of the task and of the context that a caller's message begins: UUIDs (RFC 9562, version 8) that are the same
    each time, and different for another caller or message."""
    name = f"{len(scope)} {scope}{message_id}".encode("utf-8", "surrogatepass")
    digits = blake2b(name, digest_size=32).hexdigest()
    return _uuid(digits[:32], "8"), _uuid(digits[32:], "8")


def _uuid(digits: str, version: str) -> str:
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-{version}{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


def is_new_id(text: str) -> bool:
    """Tell whether `new_id` or `derived_ids` could have made this text. If so, it holds no secret and may be repeated to the
    caller."""
    return re.fullmatch(_UUID, text) is not None


_MIN: Final = "0001-01-01T00:00:00.000Z"
_MAX: Final = "9999-12-31T23:59:59.999Z"
_BELOW_MILLISECOND: Final = timedelta(microseconds=999)

_current_second = (0, "")


def now() -> str:
    """Return the current time, RFC 3339 in UTC with milliseconds: `2026-01-31T23:59:59.999Z`. Such texts sort as their times
    do."""
    global _current_second  # noqa: PLW0603 - the text of a second is formatted once, however many events it has
    seconds, millis = divmod(time.time_ns() // 1_000_000, 1000)
    if _current_second[0] != seconds:
        _current_second = (seconds, time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)))
    return f"{_current_second[1]}.{millis:03}Z"


def ceil_timestamp(moment: datetime) -> str:
    """Return the timestamp of a moment, rounded up to milliseconds. The moment must have an offset.

    So a timestamp is at or after the moment if and only if it sorts at or after this one. Moments outside of the years 1 to
    9999 in UTC give the first or the last timestamp of those years.
    """
    try:
        utc = moment.astimezone(UTC) + _BELOW_MILLISECOND
    except OverflowError:
        return _MIN if moment.year == 1 else _MAX
    return utc.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


TERMINAL: Final = frozenset({TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELED, TaskState.REJECTED})
STATE_OF_WORD: Final = {state.word: state for state in TaskState}
"""The states by the names that operators use."""
INTERRUPTED: Final = frozenset({TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED})
INACTIVE: Final = TERMINAL | INTERRUPTED
"""States in which no execution runs."""

_NEXT: Final = frozenset({TaskState.WORKING}) | INACTIVE

TRANSITIONS: Final[dict[TaskState, frozenset[TaskState]]] = {
    state: frozenset() if state in TERMINAL else _NEXT for state in TaskState
}
"""The states that may follow each state; a transition that is not here is illegal.

    submitted ──► working ◄──► input-required, auth-required     interrupted: the task waits for its caller
        │            │               │
        └────────────┴───────┬───────┘
                             ▼
          completed, failed, canceled, rejected                  terminal: nothing changes any more

An agent may skip `working`, and may set the same state again with another message (A2A 1.0 section 4.1.3 and "Life of a Task").
"""


class SendRequest(msgspec.Struct, frozen=True):
    """The params of the two methods that send a message to the agent (A2A 1.0 sections 3.1.1 and 3.1.2)."""

    message: Message
    configuration: SendConfiguration = SendConfiguration()
    metadata: JsonObject | None = None


class TaskUpdate(msgspec.Struct, frozen=True):
    """An event with the ids of its task, for streams and push notifications. In streams `generation` is its number."""

    task_id: str
    context_id: str
    event: TaskEvent
    generation: int = 0


StreamItem: TypeAlias = Task | Message | TaskUpdate
"""One item of a stream. A stream is either one reply, or a task and then its updates."""


class TaskQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A query for tasks. None matches every task; with the `scope` None it is an operator's, who sees those of all callers.

    `status_timestamp_after` matches statuses of this timestamp and later ones. `page_size` is 1 to `MAX_PAGE_SIZE`.
    `page_token` is empty for the first page. Without `include_artifacts`, tasks are returned without artifacts, which saves
    reading them.
    """

    scope: str | None
    context_id: str | None = None
    state: TaskState | None = None
    status_timestamp_after: str | None = None
    page_size: int = 50
    page_token: str = ""
    include_artifacts: bool = True


class UnreadableTask(msgspec.Struct, frozen=True):
    """A task whose content is damaged, as the store's indexes have it. `context_id` is empty if they lack it."""

    id: str
    context_id: str
    state: TaskState


class TaskPage(msgspec.Struct, frozen=True):
    """One page of a list, the last changed task first. `next_page_token` is empty on the last page; `total_size` counts all
    tasks that match. `unreadable` are tasks that would be on the page too. `scopes` and `owners` are those of `tasks`."""

    tasks: tuple[Task, ...]
    next_page_token: str
    total_size: int
    unreadable: tuple[UnreadableTask, ...] = ()
    scopes: tuple[str, ...] = ()
    owners: tuple[str | None, ...] = ()
