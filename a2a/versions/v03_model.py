"""The params of the methods of A2A 0.3. Holds data and decides nothing.

Optional members may be null. An object may lack its `kind`, but a wrong one is refused.
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
