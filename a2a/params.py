"""The params of the methods of A2A 1.0 (section 3.1; its protobuf is normative). Holds data and decides nothing."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from msgspec import Meta, field

from .types import (
    MAX_PAGE_SIZE,
    Authentication,
    Count,
    JsonObject,
    Message,
    NonEmptyStr,
    SendConfiguration,
    TaskState,
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
