"""The params of the methods of A2A 1.0 (section 3.1; its protobuf is normative), their results and their events (sections 3.1,
3.2 and 4.2). Holds data and decides nothing.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta, field

from .types import (
    MAX_PAGE_SIZE,
    Artifact,
    Authentication,
    Count,
    JsonObject,
    Message,
    NonEmptyStr,
    PushConfig,
    SendConfiguration,
    Task,
    TaskState,
    TaskStatus,
    WireStruct,
)


class SendParams(WireStruct, frozen=True):
    message: Message
    configuration: SendConfiguration | None = None
    metadata: JsonObject | None = None
    tenant: str | None = None


class GetParams(WireStruct, frozen=True):
    task_id: NonEmptyStr = field(name="id")
    history_length: Count | None = None
    tenant: str | None = None


class ListParams(WireStruct, frozen=True):
    context_id: str | None = None
    status: TaskState | None = None
    page_size: Annotated[int, Meta(ge=1, le=MAX_PAGE_SIZE)] | None = None
    page_token: str | None = None
    history_length: Count | None = None
    status_timestamp_after: Annotated[datetime, Meta(tz=True)] | None = None
    include_artifacts: bool | None = None
    tenant: str | None = None


class CancelParams(WireStruct, frozen=True):
    task_id: NonEmptyStr = field(name="id")
    metadata: JsonObject | None = None
    tenant: str | None = None


class SubscribeParams(WireStruct, frozen=True):
    task_id: NonEmptyStr = field(name="id")
    tenant: str | None = None


class CreateConfigParams(WireStruct, frozen=True):
    task_id: NonEmptyStr
    url: NonEmptyStr
    config_id: str | None = field(name="id", default=None)
    token: str | None = None
    authentication: Authentication | None = None
    tenant: str | None = None


class OneConfigParams(WireStruct, frozen=True):
    task_id: NonEmptyStr
    config_id: NonEmptyStr = field(name="id")
    tenant: str | None = None


class ListConfigsParams(WireStruct, frozen=True):
    """The result is one page, so `pageSize` and `pageToken` are ignored (3.1.9)."""

    task_id: NonEmptyStr
    tenant: str | None = None


class GetCardParams(WireStruct, frozen=True):
    tenant: str | None = None


class TaskStatusUpdate(WireStruct, frozen=True):
    """A new status of a task (4.2.1)."""

    task_id: str
    context_id: str
    status: TaskStatus
    metadata: JsonObject | None = None


class TaskArtifactUpdate(WireStruct, frozen=True):
    """A new artifact of a task, or a part of one (4.2.2)."""

    task_id: str
    context_id: str
    artifact: Artifact
    append: bool = False
    last_chunk: bool = False
    metadata: JsonObject | None = None


class SendResponse(WireStruct, frozen=True):
    """`SendMessageResponse` and `StreamResponse` (3.2.3): exactly one member is set."""

    task: Task | None = None
    message: Message | None = None
    status_update: TaskStatusUpdate | None = None
    artifact_update: TaskArtifactUpdate | None = None


class PushConfigList(msgspec.Struct, frozen=True, rename="camel"):
    """The push configs of a task (3.1.9). Written also where there are none."""

    configs: tuple[PushConfig, ...] = ()


class TaskList(msgspec.Struct, frozen=True, rename="camel"):
    """A page of tasks (3.1.4). Every member is written, the empty `nextPageToken` of the last page too."""

    tasks: tuple[Task, ...] = ()  # defaults for what other servers leave out
    next_page_token: str = ""
    page_size: int = 0
    total_size: int = 0
