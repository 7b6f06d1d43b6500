"""The results and events of the methods of A2A 1.0 (sections 3.1, 3.2 and 4.2). Holds data and decides nothing."""

from __future__ import annotations

import msgspec

from .types import Artifact, JsonObject, Message, PushConfig, Task, TaskStatus, WireStruct


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
