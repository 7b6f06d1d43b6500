"""The JSON of the 0.3 dialect: every object has a `kind`, every member that is not required may be null.

Read and written alike. On the way in a missing `kind` is forgiven, a wrong one is not. Holds data and decides nothing.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, field

from ..model.types import JsonObject, Name, Wire

Strings: TypeAlias = tuple[str, ...]
Count: TypeAlias = Annotated[int, Meta(ge=0)]


class File03(Wire, frozen=True, kw_only=True):
    """Exactly one of `bytes` (base64) and `uri`."""

    bytes: str | None = None
    uri: str | None = None
    name: str | None = None
    mime_type: str | None = None


class Part03(Wire, frozen=True, kw_only=True):
    """What its `kind` says, and not the other two."""

    kind: Literal["text", "file", "data"] | None = None
    text: str | None = None
    file: File03 | None = None
    data: JsonObject | None = None
    metadata: JsonObject | None = None


class Message03(Wire, frozen=True, kw_only=True):
    kind: Literal["message"] | None = None
    message_id: Name
    role: Literal["user", "agent"]
    parts: Annotated[tuple[Part03, ...], Meta(min_length=1)]
    context_id: str | None = None
    task_id: str | None = None
    metadata: JsonObject | None = None
    extensions: Strings | None = None
    reference_task_ids: Strings | None = None


class Status03(Wire, frozen=True, kw_only=True):
    """The names of states are `v03_writing.STATES`."""

    state: str
    message: Message03 | None = None
    timestamp: str | None = None


class Artifact03(Wire, frozen=True, kw_only=True):
    artifact_id: str
    parts: tuple[Part03, ...]
    name: str | None = None
    description: str | None = None
    metadata: JsonObject | None = None
    extensions: Strings | None = None


class Task03(Wire, frozen=True, kw_only=True):
    kind: Literal["task"] | None = None
    id: str
    context_id: str
    status: Status03
    artifacts: tuple[Artifact03, ...] | None = None
    history: tuple[Message03, ...] | None = None
    metadata: JsonObject | None = None


class StatusUpdate03(Wire, frozen=True, kw_only=True):
    """`final`: no other event follows before the client says something."""

    kind: Literal["status-update"] | None = None
    task_id: str
    context_id: str
    status: Status03
    final: bool
    metadata: JsonObject | None = None


class ArtifactUpdate03(Wire, frozen=True, kw_only=True):
    kind: Literal["artifact-update"] | None = None
    task_id: str
    context_id: str
    artifact: Artifact03
    append: bool | None = None
    last_chunk: bool | None = None
    metadata: JsonObject | None = None


class Authentication03(Wire, frozen=True, kw_only=True):
    schemes: tuple[Name, ...]
    credentials: str | None = None


class PushConfig03(Wire, frozen=True, kw_only=True):
    url: Name
    id: str | None = None
    token: str | None = None
    authentication: Authentication03 | None = None


class TaskPushConfig03(Wire, frozen=True, kw_only=True):
    task_id: Name
    push_notification_config: PushConfig03


class Configuration03(Wire, frozen=True, kw_only=True):
    accepted_output_modes: Strings | None = None
    blocking: bool | None = None
    history_length: Count | None = None
    push_notification_config: PushConfig03 | None = None


class SendParams03(Wire, frozen=True, kw_only=True):
    message: Message03
    configuration: Configuration03 | None = None
    metadata: JsonObject | None = None


class GetParams03(Wire, frozen=True, kw_only=True):
    task_id: Name = field(name="id")
    history_length: Count | None = None


class TaskParams03(Wire, frozen=True, kw_only=True):
    task_id: Name = field(name="id")
    metadata: JsonObject | None = None


class ConfigParams03(Wire, frozen=True, kw_only=True):
    task_id: Name = field(name="id")


class GetConfigParams03(Wire, frozen=True, kw_only=True):
    task_id: Name = field(name="id")
    config_id: str | None = field(name="pushNotificationConfigId", default=None)


class DeleteConfigParams03(Wire, frozen=True, kw_only=True):
    task_id: Name = field(name="id")
    config_id: Name = field(name="pushNotificationConfigId")


class CardParams03(Wire, frozen=True, kw_only=True):
    """None."""
