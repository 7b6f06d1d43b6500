"""The JSON of A2A 0.3, for reading and for writing. Holds data and decides nothing.

Objects have a `kind`; optional members may be null. What is read may lack `kind`, but a wrong one is refused.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, field

from ..types import Count, JsonObject, NonEmptyStr, WireStruct

Strings: TypeAlias = tuple[str, ...]


class File03(WireStruct, frozen=True, kw_only=True):
    """Exactly one of `bytes` (base64) and `uri`."""

    bytes: str | None = None
    uri: str | None = None
    name: str | None = None
    mime_type: str | None = None


class Part03(WireStruct, frozen=True, kw_only=True):
    """One of `text`, `file` and `data`, as `kind` says."""

    kind: Literal["text", "file", "data"] | None = None
    text: str | None = None
    file: File03 | None = None
    data: JsonObject | None = None
    metadata: JsonObject | None = None


class Message03(WireStruct, frozen=True, kw_only=True):
    kind: Literal["message"] | None = None
    message_id: NonEmptyStr
    role: Literal["user", "agent"]
    parts: Annotated[tuple[Part03, ...], Meta(min_length=1)]
    context_id: str | None = None
    task_id: str | None = None
    metadata: JsonObject | None = None
    extensions: Strings | None = None
    reference_task_ids: Strings | None = None


class Status03(WireStruct, frozen=True, kw_only=True):
    """`state` is one of `v03.STATE_NAMES`."""

    state: str
    message: Message03 | None = None
    timestamp: str | None = None


class Artifact03(WireStruct, frozen=True, kw_only=True):
    artifact_id: str
    parts: tuple[Part03, ...]
    name: str | None = None
    description: str | None = None
    metadata: JsonObject | None = None
    extensions: Strings | None = None


class Task03(WireStruct, frozen=True, kw_only=True):
    kind: Literal["task"] | None = None
    id: str
    context_id: str
    status: Status03
    artifacts: tuple[Artifact03, ...] | None = None
    history: tuple[Message03, ...] | None = None
    metadata: JsonObject | None = None


class StatusUpdate03(WireStruct, frozen=True, kw_only=True):
    """`final` says that no event follows until the client sends another message."""

    kind: Literal["status-update"] | None = None
    task_id: str
    context_id: str
    status: Status03
    final: bool
    metadata: JsonObject | None = None


class ArtifactUpdate03(WireStruct, frozen=True, kw_only=True):
    kind: Literal["artifact-update"] | None = None
    task_id: str
    context_id: str
    artifact: Artifact03
    append: bool | None = None
    last_chunk: bool | None = None
    metadata: JsonObject | None = None


class Authentication03(WireStruct, frozen=True, kw_only=True):
    schemes: tuple[NonEmptyStr, ...]
    credentials: str | None = None


class PushConfig03(WireStruct, frozen=True, kw_only=True):
    url: NonEmptyStr
    id: str | None = None
    token: str | None = None
    authentication: Authentication03 | None = None


class TaskPushConfig03(WireStruct, frozen=True, kw_only=True):
    task_id: NonEmptyStr
    push_notification_config: PushConfig03


class Configuration03(WireStruct, frozen=True, kw_only=True):
    accepted_output_modes: Strings | None = None
    blocking: bool | None = None
    history_length: Count | None = None
    push_notification_config: PushConfig03 | None = None


class SendParams03(WireStruct, frozen=True, kw_only=True):
    message: Message03
    configuration: Configuration03 | None = None
    metadata: JsonObject | None = None


class GetParams03(WireStruct, frozen=True, kw_only=True):
    task_id: NonEmptyStr = field(name="id")
    history_length: Count | None = None


class TaskParams03(WireStruct, frozen=True, kw_only=True):
    task_id: NonEmptyStr = field(name="id")
    metadata: JsonObject | None = None


class ConfigParams03(WireStruct, frozen=True, kw_only=True):
    task_id: NonEmptyStr = field(name="id")


class GetConfigParams03(WireStruct, frozen=True, kw_only=True):
    task_id: NonEmptyStr = field(name="id")
    config_id: str | None = field(name="pushNotificationConfigId", default=None)


class DeleteConfigParams03(WireStruct, frozen=True, kw_only=True):
    task_id: NonEmptyStr = field(name="id")
    config_id: NonEmptyStr = field(name="pushNotificationConfigId")


class CardParams03(WireStruct, frozen=True, kw_only=True):
    """The params of `agent/getAuthenticatedExtendedCard`: none."""
