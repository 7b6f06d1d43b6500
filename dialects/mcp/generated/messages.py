# Written by tools/protocols from the schema of MCP 2025-11-25. Do not edit.
"""The other params and results of methods, for clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias

from msgspec import field
from msgspec.structs import force_setattr

from ...structs import FrozenWireStruct, StructUnion
from .structs import (
    CompleteRequestParamsArgument,
    PromptReference,
    ResourceTemplateReference,
    Root,
    SamplingMessage,
    Tool,
)

__all__ = [
    "BooleanSchema", "CallToolRequestParams", "CancelledNotificationParams", "CompleteRequestParams",
    "CompleteRequestParamsContext", "CreateMessageRequestParams", "ElicitRequestFormParams",
    "ElicitRequestFormParamsRequestedSchema", "ElicitRequestParams", "ElicitRequestURLParams", "ElicitResult",
    "ElicitationCompleteNotificationParams", "GetPromptRequestParams", "LegacyTitledEnumSchema", "ListRootsResult",
    "LoggingLevel", "LoggingMessageNotificationParams", "ModelHint", "ModelPreferences", "NotificationParams",
    "NumberSchema", "PaginatedRequestParams", "PrimitiveSchemaDefinition", "ProgressNotificationParams",
    "ProgressToken", "ReadResourceRequestParams", "RequestId", "RequestParams", "ResourceUpdatedNotificationParams",
    "SetLevelRequestParams", "StringSchema", "SubscribeRequestParams", "TaskMetadata",
    "TitledMultiSelectEnumSchema", "TitledMultiSelectEnumSchemaItems", "TitledMultiSelectEnumSchemaItemsAnyOfItem",
    "TitledSingleSelectEnumSchema", "TitledSingleSelectEnumSchemaOneOfItem", "ToolChoice",
    "UnsubscribeRequestParams", "UntitledMultiSelectEnumSchema", "UntitledMultiSelectEnumSchemaItems",
    "UntitledSingleSelectEnumSchema",
]  # fmt: skip


class BooleanSchema(FrozenWireStruct, frozen=True, kw_only=True, tag_field="type", tag="boolean"):
    type: ClassVar[Literal["boolean"]] = "boolean"
    default: bool | None = None
    description: str | None = None
    title: str | None = None


class CallToolRequestParams(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    arguments: dict[str, Any] | None = None
    name: str
    task: TaskMetadata | None = None


class CancelledNotificationParams(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    reason: str | None = None
    request_id: RequestId | None = None


class CompleteRequestParams(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    argument: CompleteRequestParamsArgument
    context: CompleteRequestParamsContext | None = None
    ref: PromptReference | ResourceTemplateReference


class CompleteRequestParamsContext(FrozenWireStruct, frozen=True, kw_only=True):
    arguments: dict[str, str] | None = None


class CreateMessageRequestParams(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    include_context: Literal["allServers", "none", "thisServer"] | None = None
    max_tokens: int
    messages: list[SamplingMessage]
    metadata: dict[str, Any] | None = None
    model_preferences: ModelPreferences | None = None
    stop_sequences: list[str] | None = None
    system_prompt: str | None = None
    task: TaskMetadata | None = None
    temperature: float | None = None
    tool_choice: ToolChoice | None = None
    tools: list[Tool] | None = None


class ElicitRequestFormParams(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    message: str
    mode: Literal["form"] | None = None
    requested_schema: ElicitRequestFormParamsRequestedSchema
    task: TaskMetadata | None = None


class ElicitRequestFormParamsRequestedSchema(
    FrozenWireStruct, frozen=True, kw_only=True, tag_field="type", tag="object"
):
    type: ClassVar[Literal["object"]] = "object"
    schema: str | None = field(default=None, name="$schema")
    properties: dict[str, PrimitiveSchemaDefinition]
    required: list[str] | None = None

    def __post_init__(self) -> None:
        force_setattr(
            self,
            "properties",
            {key: PRIMITIVE_SCHEMA_DEFINITION_UNION.read(item) for key, item in self.properties.items()},
        )


class ElicitRequestURLParams(FrozenWireStruct, frozen=True, kw_only=True, tag_field="mode", tag="url"):
    mode: ClassVar[Literal["url"]] = "url"
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    elicitation_id: str
    message: str
    task: TaskMetadata | None = None
    url: str


class ElicitResult(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    action: Literal["accept", "cancel", "decline"]
    content: dict[str, list[str] | str | int | bool] | None = None


class ElicitationCompleteNotificationParams(FrozenWireStruct, frozen=True, kw_only=True):
    elicitation_id: str


class GetPromptRequestParams(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    arguments: dict[str, str] | None = None
    name: str


class LegacyTitledEnumSchema(FrozenWireStruct, frozen=True, kw_only=True, tag_field="type", tag="string"):
    type: ClassVar[Literal["string"]] = "string"
    default: str | None = None
    description: str | None = None
    enum: list[str]
    enum_names: list[str] | None = None
    title: str | None = None


class ListRootsResult(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    roots: list[Root]


class LoggingMessageNotificationParams(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    data: Any
    level: LoggingLevel
    logger: str | None = None


class ModelHint(FrozenWireStruct, frozen=True, kw_only=True):
    name: str | None = None


class ModelPreferences(FrozenWireStruct, frozen=True, kw_only=True):
    cost_priority: float | None = None
    hints: list[ModelHint] | None = None
    intelligence_priority: float | None = None
    speed_priority: float | None = None


class NotificationParams(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class NumberSchema(FrozenWireStruct, frozen=True, kw_only=True):
    default: float | None = None
    description: str | None = None
    maximum: float | None = None
    minimum: float | None = None
    title: str | None = None
    type: Literal["integer", "number"]


class PaginatedRequestParams(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    cursor: str | None = None


class StringSchema(FrozenWireStruct, frozen=True, kw_only=True, tag_field="type", tag="string"):
    type: ClassVar[Literal["string"]] = "string"
    default: str | None = None
    description: str | None = None
    format: Literal["date", "date-time", "email", "uri"] | None = None
    max_length: int | None = None
    min_length: int | None = None
    title: str | None = None


class TitledMultiSelectEnumSchema(FrozenWireStruct, frozen=True, kw_only=True, tag_field="type", tag="array"):
    type: ClassVar[Literal["array"]] = "array"
    default: list[str] | None = None
    description: str | None = None
    items: TitledMultiSelectEnumSchemaItems
    max_items: int | None = None
    min_items: int | None = None
    title: str | None = None


class TitledSingleSelectEnumSchema(FrozenWireStruct, frozen=True, kw_only=True, tag_field="type", tag="string"):
    type: ClassVar[Literal["string"]] = "string"
    default: str | None = None
    description: str | None = None
    one_of: list[TitledSingleSelectEnumSchemaOneOfItem]
    title: str | None = None


class UntitledMultiSelectEnumSchema(FrozenWireStruct, frozen=True, kw_only=True, tag_field="type", tag="array"):
    type: ClassVar[Literal["array"]] = "array"
    default: list[str] | None = None
    description: str | None = None
    items: UntitledMultiSelectEnumSchemaItems
    max_items: int | None = None
    min_items: int | None = None
    title: str | None = None


class UntitledSingleSelectEnumSchema(FrozenWireStruct, frozen=True, kw_only=True, tag_field="type", tag="string"):
    type: ClassVar[Literal["string"]] = "string"
    default: str | None = None
    description: str | None = None
    enum: list[str]
    title: str | None = None


class ProgressNotificationParams(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    message: str | None = None
    progress: float
    progress_token: ProgressToken
    total: float | None = None


class ReadResourceRequestParams(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    uri: str


class RequestParams(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class ResourceUpdatedNotificationParams(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    uri: str


class SetLevelRequestParams(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    level: LoggingLevel


class SubscribeRequestParams(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    uri: str


class TaskMetadata(FrozenWireStruct, frozen=True, kw_only=True):
    ttl: int | None = None


class TitledMultiSelectEnumSchemaItems(FrozenWireStruct, frozen=True, kw_only=True):
    any_of: list[TitledMultiSelectEnumSchemaItemsAnyOfItem]


class TitledMultiSelectEnumSchemaItemsAnyOfItem(FrozenWireStruct, frozen=True, kw_only=True):
    const: str
    title: str


class TitledSingleSelectEnumSchemaOneOfItem(FrozenWireStruct, frozen=True, kw_only=True):
    const: str
    title: str


class ToolChoice(FrozenWireStruct, frozen=True, kw_only=True):
    mode: Literal["auto", "none", "required"] | None = None


class UnsubscribeRequestParams(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    uri: str


class UntitledMultiSelectEnumSchemaItems(FrozenWireStruct, frozen=True, kw_only=True, tag_field="type", tag="string"):
    type: ClassVar[Literal["string"]] = "string"
    enum: list[str]


ELICIT_REQUEST_PARAMS_UNION = StructUnion(
    (),
    (
        ("elicitationId message mode url", ElicitRequestURLParams),
        ("message requestedSchema", ElicitRequestFormParams),
    ),
    lists=False,
)
if TYPE_CHECKING:
    ElicitRequestParams: TypeAlias = ElicitRequestURLParams | ElicitRequestFormParams
else:
    ElicitRequestParams = Annotated[Any, ELICIT_REQUEST_PARAMS_UNION]


LoggingLevel: TypeAlias = Literal["alert", "critical", "debug", "emergency", "error", "info", "notice", "warning"]

PRIMITIVE_SCHEMA_DEFINITION_UNION = StructUnion(
    (),
    (
        ("enum type", UntitledSingleSelectEnumSchema),
        ("oneOf type", TitledSingleSelectEnumSchema),
        ("items type", UntitledMultiSelectEnumSchema),
        ("items type", TitledMultiSelectEnumSchema),
        ("enum type", LegacyTitledEnumSchema),
        ("type", StringSchema),
        ("type", NumberSchema),
        ("type", BooleanSchema),
    ),
    lists=False,
)
if TYPE_CHECKING:
    PrimitiveSchemaDefinition: TypeAlias = (
        StringSchema
        | NumberSchema
        | BooleanSchema
        | UntitledSingleSelectEnumSchema
        | TitledSingleSelectEnumSchema
        | UntitledMultiSelectEnumSchema
        | TitledMultiSelectEnumSchema
        | LegacyTitledEnumSchema
    )
else:
    PrimitiveSchemaDefinition = Annotated[Any, PRIMITIVE_SCHEMA_DEFINITION_UNION]


ProgressToken: TypeAlias = str | int

RequestId: TypeAlias = str | int
