# Written by tools/protocols from the schema of ACP 1. Do not edit.
"""What an agent asks of a client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias

from msgspec import field
from msgspec.structs import force_setattr

from ...structs import FrozenWireStruct, OpenStr, StructUnion
from .methods_of_agents import EnvVariable
from .prompts import SessionId, TerminalId, ToolCallId, ToolCallUpdate

__all__ = [
    "BooleanPropertySchema", "CancelRequestNotification", "CompleteElicitationNotification",
    "CreateElicitationRequest", "CreateElicitationResponse", "CreateTerminalRequest", "CreateTerminalResponse",
    "ElicitationContentValue", "ElicitationId", "ElicitationPropertySchema", "ElicitationSchema",
    "ElicitationSchemaType", "EnumOption", "IntegerPropertySchema", "KillTerminalRequest", "KillTerminalResponse",
    "MultiSelectItems", "MultiSelectPropertySchema", "NumberPropertySchema", "PermissionOption",
    "PermissionOptionId", "PermissionOptionKind", "ReadTextFileRequest", "ReadTextFileResponse",
    "ReleaseTerminalRequest", "ReleaseTerminalResponse", "RequestId", "RequestPermissionOutcome",
    "RequestPermissionOutcomeCancelled", "RequestPermissionRequest", "RequestPermissionResponse",
    "SelectedPermissionOutcome", "StringFormat", "StringMultiSelectItems", "StringPropertySchema",
    "TerminalExitStatus", "TerminalOutputRequest", "TerminalOutputResponse", "TitledMultiSelectItems",
    "WaitForTerminalExitRequest", "WaitForTerminalExitResponse", "WriteTextFileRequest", "WriteTextFileResponse",
]  # fmt: skip


class ElicitationSchemaType(OpenStr):
    OBJECT = "object"


class PermissionOptionKind(OpenStr):
    ALLOW_ONCE = "allow_once"
    ALLOW_ALWAYS = "allow_always"
    REJECT_ONCE = "reject_once"
    REJECT_ALWAYS = "reject_always"


class StringFormat(OpenStr):
    EMAIL = "email"
    URI = "uri"
    DATE = "date"
    DATE_TIME = "date-time"


class BooleanPropertySchema(FrozenWireStruct, frozen=True, kw_only=True, tag_field="type", tag="boolean"):
    type: ClassVar[Literal["boolean"]] = "boolean"
    title: str | None = None
    description: str | None = None
    default: bool | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class CancelRequestNotification(FrozenWireStruct, frozen=True, kw_only=True):
    request_id: RequestId
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class CompleteElicitationNotification(FrozenWireStruct, frozen=True, kw_only=True):
    elicitation_id: ElicitationId
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class CreateElicitationRequest(FrozenWireStruct, frozen=True, kw_only=True):
    message: str
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    mode: str
    requested_schema: ElicitationSchema | None = None
    session_id: SessionId | None = None
    tool_call_id: ToolCallId | None = None
    request_id: RequestId | None = None
    elicitation_id: ElicitationId | None = None
    url: str | None = None


class CreateElicitationResponse(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")
    action: str
    content: dict[str, ElicitationContentValue] | None = None


class CreateTerminalRequest(FrozenWireStruct, frozen=True, kw_only=True):
    session_id: SessionId
    command: str
    args: list[str] | None = None
    env: list[EnvVariable] | None = None
    cwd: str | None = None
    output_byte_limit: int | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class CreateTerminalResponse(FrozenWireStruct, frozen=True, kw_only=True):
    terminal_id: TerminalId
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class IntegerPropertySchema(FrozenWireStruct, frozen=True, kw_only=True, tag_field="type", tag="integer"):
    type: ClassVar[Literal["integer"]] = "integer"
    title: str | None = None
    description: str | None = None
    minimum: int | None = None
    maximum: int | None = None
    default: int | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class MultiSelectPropertySchema(FrozenWireStruct, frozen=True, kw_only=True, tag_field="type", tag="array"):
    type: ClassVar[Literal["array"]] = "array"
    title: str | None = None
    description: str | None = None
    min_items: int | None = None
    max_items: int | None = None
    items: MultiSelectItems
    default: list[str] | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")

    def __post_init__(self) -> None:
        force_setattr(self, "items", MULTI_SELECT_ITEMS_UNION.read(self.items))


class NumberPropertySchema(FrozenWireStruct, frozen=True, kw_only=True, tag_field="type", tag="number"):
    type: ClassVar[Literal["number"]] = "number"
    title: str | None = None
    description: str | None = None
    minimum: float | None = None
    maximum: float | None = None
    default: float | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class StringPropertySchema(FrozenWireStruct, frozen=True, kw_only=True, tag_field="type", tag="string"):
    type: ClassVar[Literal["string"]] = "string"
    title: str | None = None
    description: str | None = None
    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None
    format: StringFormat | None = None
    default: str | None = None
    enum: list[str] | None = None
    one_of: list[EnumOption] | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class ElicitationSchema(FrozenWireStruct, frozen=True, kw_only=True):
    type: ElicitationSchemaType | None = None
    title: str | None = None
    properties: dict[str, ElicitationPropertySchema] | None = None
    required: list[str] | None = None
    description: str | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class EnumOption(FrozenWireStruct, frozen=True, kw_only=True):
    const: str
    title: str
    description: str | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class KillTerminalRequest(FrozenWireStruct, frozen=True, kw_only=True):
    session_id: SessionId
    terminal_id: TerminalId
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class KillTerminalResponse(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class StringMultiSelectItems(FrozenWireStruct, frozen=True, kw_only=True, tag_field="type", tag="string"):
    type: ClassVar[Literal["string"]] = "string"
    enum: list[str]
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class TitledMultiSelectItems(FrozenWireStruct, frozen=True, kw_only=True):
    any_of: list[EnumOption]
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class PermissionOption(FrozenWireStruct, frozen=True, kw_only=True):
    option_id: PermissionOptionId
    name: str
    kind: PermissionOptionKind
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class ReadTextFileRequest(FrozenWireStruct, frozen=True, kw_only=True):
    session_id: SessionId
    path: str
    line: int | None = None
    limit: int | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class ReadTextFileResponse(FrozenWireStruct, frozen=True, kw_only=True):
    content: str
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class ReleaseTerminalRequest(FrozenWireStruct, frozen=True, kw_only=True):
    session_id: SessionId
    terminal_id: TerminalId
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class ReleaseTerminalResponse(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class RequestPermissionOutcomeCancelled(
    FrozenWireStruct, frozen=True, kw_only=True, tag_field="outcome", tag="cancelled"
):
    outcome: ClassVar[Literal["cancelled"]] = "cancelled"


class SelectedPermissionOutcome(FrozenWireStruct, frozen=True, kw_only=True, tag_field="outcome", tag="selected"):
    outcome: ClassVar[Literal["selected"]] = "selected"
    option_id: PermissionOptionId
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class RequestPermissionRequest(FrozenWireStruct, frozen=True, kw_only=True):
    session_id: SessionId
    tool_call: ToolCallUpdate
    options: list[PermissionOption]
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class RequestPermissionResponse(FrozenWireStruct, frozen=True, kw_only=True):
    outcome: RequestPermissionOutcome
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class TerminalExitStatus(FrozenWireStruct, frozen=True, kw_only=True):
    exit_code: int | None = None
    signal: str | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class TerminalOutputRequest(FrozenWireStruct, frozen=True, kw_only=True):
    session_id: SessionId
    terminal_id: TerminalId
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class TerminalOutputResponse(FrozenWireStruct, frozen=True, kw_only=True):
    output: str
    truncated: bool
    exit_status: TerminalExitStatus | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class WaitForTerminalExitRequest(FrozenWireStruct, frozen=True, kw_only=True):
    session_id: SessionId
    terminal_id: TerminalId
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class WaitForTerminalExitResponse(FrozenWireStruct, frozen=True, kw_only=True):
    exit_code: int | None = None
    signal: str | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class WriteTextFileRequest(FrozenWireStruct, frozen=True, kw_only=True):
    session_id: SessionId
    path: str
    content: str
    meta: dict[str, Any] | None = field(default=None, name="_meta")


class WriteTextFileResponse(FrozenWireStruct, frozen=True, kw_only=True):
    meta: dict[str, Any] | None = field(default=None, name="_meta")


ElicitationContentValue: TypeAlias = str | int | float | bool | list[str]

ElicitationId: TypeAlias = str

ElicitationPropertySchema: TypeAlias = (
    StringPropertySchema
    | NumberPropertySchema
    | IntegerPropertySchema
    | BooleanPropertySchema
    | MultiSelectPropertySchema
)

MULTI_SELECT_ITEMS_UNION = StructUnion(
    (),
    (
        ("enum type", StringMultiSelectItems),
        ("anyOf", TitledMultiSelectItems),
    ),
    lists=False,
)
if TYPE_CHECKING:
    MultiSelectItems: TypeAlias = StringMultiSelectItems | TitledMultiSelectItems
else:
    MultiSelectItems = Annotated[Any, MULTI_SELECT_ITEMS_UNION]


PermissionOptionId: TypeAlias = str

RequestId: TypeAlias = int | str | None

RequestPermissionOutcome: TypeAlias = RequestPermissionOutcomeCancelled | SelectedPermissionOutcome
