"""The JSON of A2A 0.3 over HTTP+JSON, for reading and for writing: the ProtoJSON of its `a2a.proto`. Holds data, decides nothing.

It is not the JSON of 0.3 over JSON-RPC (`v03_model`): there are no kinds, and roles and states have the names of the protobuf.
"""

from __future__ import annotations

from enum import Enum
from typing import Annotated

from msgspec import Meta, field

from ..types import Count, JsonObject, NonEmptyStr, Role, TaskState, WireStruct


class State03(Enum):
    """The states of a task by their names in the protobuf of 0.3."""

    SUBMITTED = "TASK_STATE_SUBMITTED"
    WORKING = "TASK_STATE_WORKING"
    INPUT_REQUIRED = "TASK_STATE_INPUT_REQUIRED"
    AUTH_REQUIRED = "TASK_STATE_AUTH_REQUIRED"
    COMPLETED = "TASK_STATE_COMPLETED"
    FAILED = "TASK_STATE_FAILED"
    CANCELED = "TASK_STATE_CANCELLED"
    REJECTED = "TASK_STATE_REJECTED"


STATES = {state: State03[state.name] for state in TaskState}


class FilePart(WireStruct, frozen=True, kw_only=True):
    """Exactly one of the first two. The bytes are themselves a base64 text, as the SDKs for 0.3 send and expect them."""

    file_with_uri: str | None = None
    file_with_bytes: bytes | None = None
    mime_type: str | None = None
    name: str | None = None


class DataPart(WireStruct, frozen=True):
    data: JsonObject


class ProtoPart(WireStruct, frozen=True, kw_only=True):
    """Exactly one of `text`, `file` and `data`."""

    text: str | None = None
    file: FilePart | None = None
    data: DataPart | None = None
    metadata: JsonObject | None = None


class ProtoMessage(WireStruct, frozen=True, kw_only=True):
    message_id: NonEmptyStr
    role: Role
    content: Annotated[tuple[ProtoPart, ...], Meta(min_length=1)]
    context_id: str | None = None
    task_id: str | None = None
    metadata: JsonObject | None = None
    extensions: tuple[str, ...] = ()


class ProtoStatus(WireStruct, frozen=True, kw_only=True):
    state: State03
    message: ProtoMessage | None = None
    timestamp: str | None = None


class ProtoArtifact(WireStruct, frozen=True, kw_only=True):
    artifact_id: str
    parts: tuple[ProtoPart, ...]
    name: str | None = None
    description: str | None = None
    metadata: JsonObject | None = None
    extensions: tuple[str, ...] = ()


class ProtoTask(WireStruct, frozen=True, kw_only=True):
    id: str
    context_id: str
    status: ProtoStatus
    artifacts: tuple[ProtoArtifact, ...] = ()
    history: tuple[ProtoMessage, ...] = ()
    metadata: JsonObject | None = None


class ProtoStatusUpdate(WireStruct, frozen=True, kw_only=True):
    """`final` says that no event follows until the client sends another message."""

    task_id: str
    context_id: str
    status: ProtoStatus
    final: bool = False
    metadata: JsonObject | None = None


class ProtoArtifactUpdate(WireStruct, frozen=True, kw_only=True):
    task_id: str
    context_id: str
    artifact: ProtoArtifact
    append: bool = False
    last_chunk: bool = False
    metadata: JsonObject | None = None


class ProtoResponse(WireStruct, frozen=True, kw_only=True):
    """`SendMessageResponse` and `StreamResponse`: exactly one member is set."""

    task: ProtoTask | None = None
    message: ProtoMessage | None = None
    status_update: ProtoStatusUpdate | None = None
    artifact_update: ProtoArtifactUpdate | None = None


class ProtoAuthentication(WireStruct, frozen=True, kw_only=True):
    schemes: tuple[NonEmptyStr, ...] = ()
    credentials: str | None = None


class ProtoPushConfig(WireStruct, frozen=True, kw_only=True):
    url: NonEmptyStr
    id: str | None = None
    token: str | None = None
    authentication: ProtoAuthentication | None = None


class ProtoTaskPushConfig(WireStruct, frozen=True, kw_only=True):
    """`name` is `tasks/TASK/pushNotificationConfigs/CONFIG`. What is read may lack it: the path of the request says the same."""

    push_notification_config: ProtoPushConfig
    name: str | None = None


class ProtoPushConfigs(WireStruct, frozen=True, kw_only=True):
    configs: tuple[ProtoTaskPushConfig, ...] = ()


class ProtoConfiguration(WireStruct, frozen=True, kw_only=True):
    accepted_output_modes: tuple[str, ...] = ()
    push_notification: ProtoPushConfig | None = None
    history_length: Count | None = None
    blocking: bool | None = None


class ProtoSend(WireStruct, frozen=True, kw_only=True):
    """`request` is the name of `message` in the protobuf, which clients may use as well."""

    message: ProtoMessage | None = None
    request: ProtoMessage | None = None
    configuration: ProtoConfiguration | None = None
    metadata: JsonObject | None = None


class ProtoTaskParams(WireStruct, frozen=True, kw_only=True):
    """What paths and queries say of a request about one task."""

    task_id: NonEmptyStr = field(name="id")
    history_length: Count | None = None


class ProtoSetConfig(WireStruct, frozen=True, kw_only=True):
    task_id: NonEmptyStr = field(name="id")
    config: ProtoTaskPushConfig
    config_id: str | None = None


class ProtoConfigParams(WireStruct, frozen=True, kw_only=True):
    task_id: NonEmptyStr = field(name="id")
    config_id: NonEmptyStr = field(name="pushNotificationConfigId")


class ProtoNothing(WireStruct, frozen=True):
    """The params of a request for the card."""
