# Written by tools/protocols from the meta model of LSP 3.18.0. Do not edit.
"""Colors, links, inlay hints, inline values and semantic tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from msgspec import Struct

from ...structs import OpenInt, OpenStr, StructUnion, WireStruct
from .base import Command, Location, MarkupContent, Position, ProgressToken, Range, TextDocumentIdentifier, TextEdit

__all__ = [
    "Color", "ColorInformation", "ColorPresentation", "ColorPresentationParams", "DocumentColorParams",
    "DocumentLink", "DocumentLinkParams", "InlayHint", "InlayHintKind", "InlayHintLabelPart", "InlayHintParams",
    "InlineValue", "InlineValueContext", "InlineValueEvaluatableExpression", "InlineValueParams", "InlineValueText",
    "InlineValueVariableLookup", "SemanticTokenModifiers", "SemanticTokenTypes", "SemanticTokens",
    "SemanticTokensDelta", "SemanticTokensDeltaParams", "SemanticTokensDeltaPartialResult",
    "SemanticTokensDeltaResult", "SemanticTokensEdit", "SemanticTokensParams", "SemanticTokensPartialResult",
    "SemanticTokensRangeParams",
]  # fmt: skip


class InlayHintKind(OpenInt):
    TYPE = 1
    PARAMETER = 2


class SemanticTokenModifiers(OpenStr):
    DECLARATION = "declaration"
    DEFINITION = "definition"
    READONLY = "readonly"
    STATIC = "static"
    DEPRECATED = "deprecated"
    ABSTRACT = "abstract"
    ASYNC = "async"
    MODIFICATION = "modification"
    DOCUMENTATION = "documentation"
    DEFAULT_LIBRARY = "defaultLibrary"


class SemanticTokenTypes(OpenStr):
    NAMESPACE = "namespace"
    TYPE = "type"
    CLASS = "class"
    ENUM = "enum"
    INTERFACE = "interface"
    STRUCT = "struct"
    TYPE_PARAMETER = "typeParameter"
    PARAMETER = "parameter"
    VARIABLE = "variable"
    PROPERTY = "property"
    ENUM_MEMBER = "enumMember"
    EVENT = "event"
    FUNCTION = "function"
    METHOD = "method"
    MACRO = "macro"
    KEYWORD = "keyword"
    MODIFIER = "modifier"
    COMMENT = "comment"
    STRING = "string"
    NUMBER = "number"
    REGEXP = "regexp"
    OPERATOR = "operator"
    DECORATOR = "decorator"
    LABEL = "label"


class Color(Struct, rename="camel", frozen=True, order=True):
    red: float
    green: float
    blue: float
    alpha: float


class ColorInformation(Struct, rename="camel", frozen=True, order=True):
    range: Range
    color: Color


class ColorPresentation(WireStruct, kw_only=True):
    label: str
    text_edit: TextEdit | None = None
    additional_text_edits: list[TextEdit] | None = None


class ColorPresentationParams(WireStruct, kw_only=True):
    work_done_token: ProgressToken | None = None
    partial_result_token: ProgressToken | None = None
    text_document: TextDocumentIdentifier
    color: Color
    range: Range


class DocumentColorParams(WireStruct, kw_only=True):
    work_done_token: ProgressToken | None = None
    partial_result_token: ProgressToken | None = None
    text_document: TextDocumentIdentifier


class DocumentLink(WireStruct, kw_only=True):
    range: Range
    target: str | None = None
    tooltip: str | None = None
    data: Any = None


class DocumentLinkParams(WireStruct, kw_only=True):
    work_done_token: ProgressToken | None = None
    partial_result_token: ProgressToken | None = None
    text_document: TextDocumentIdentifier


class InlayHint(WireStruct, kw_only=True):
    position: Position
    label: str | list[InlayHintLabelPart]
    kind: InlayHintKind | None = None
    text_edits: list[TextEdit] | None = None
    tooltip: str | MarkupContent | None = None
    padding_left: bool | None = None
    padding_right: bool | None = None
    data: Any = None


class InlayHintLabelPart(WireStruct, kw_only=True):
    value: str
    tooltip: str | MarkupContent | None = None
    location: Location | None = None
    command: Command | None = None


class InlayHintParams(WireStruct, kw_only=True):
    work_done_token: ProgressToken | None = None
    partial_result_token: ProgressToken | None = None
    text_document: TextDocumentIdentifier
    range: Range


class InlineValueEvaluatableExpression(WireStruct, kw_only=True):
    range: Range
    expression: str | None = None


class InlineValueText(WireStruct, kw_only=True):
    range: Range
    text: str


class InlineValueVariableLookup(WireStruct, kw_only=True):
    range: Range
    variable_name: str | None = None
    case_sensitive_lookup: bool


class InlineValueContext(Struct, rename="camel", frozen=True, order=True):
    frame_id: int
    stopped_location: Range


class InlineValueParams(WireStruct, kw_only=True):
    work_done_token: ProgressToken | None = None
    partial_result_token: ProgressToken | None = None
    text_document: TextDocumentIdentifier
    range: Range
    context: InlineValueContext


class SemanticTokens(WireStruct, kw_only=True):
    result_id: str | None = None
    data: list[int]


class SemanticTokensDelta(WireStruct, kw_only=True):
    result_id: str | None = None
    edits: list[SemanticTokensEdit]


class SemanticTokensDeltaParams(WireStruct, kw_only=True):
    work_done_token: ProgressToken | None = None
    partial_result_token: ProgressToken | None = None
    text_document: TextDocumentIdentifier
    previous_result_id: str


class SemanticTokensDeltaPartialResult(WireStruct, kw_only=True):
    edits: list[SemanticTokensEdit]


class SemanticTokensEdit(WireStruct, kw_only=True):
    start: int
    delete_count: int
    data: list[int] | None = None


class SemanticTokensParams(WireStruct, kw_only=True):
    work_done_token: ProgressToken | None = None
    partial_result_token: ProgressToken | None = None
    text_document: TextDocumentIdentifier


class SemanticTokensPartialResult(WireStruct, kw_only=True):
    data: list[int]


class SemanticTokensRangeParams(WireStruct, kw_only=True):
    work_done_token: ProgressToken | None = None
    partial_result_token: ProgressToken | None = None
    text_document: TextDocumentIdentifier
    range: Range


INLINE_VALUE_UNION = StructUnion(
    (),
    (
        ("range text", InlineValueText),
        ("caseSensitiveLookup range", InlineValueVariableLookup),
        ("range", InlineValueEvaluatableExpression),
    ),
    lists=False,
)
if TYPE_CHECKING:
    InlineValue: TypeAlias = InlineValueText | InlineValueVariableLookup | InlineValueEvaluatableExpression
else:
    InlineValue = Annotated[Any, INLINE_VALUE_UNION]


SEMANTIC_TOKENS_DELTA_RESULT_UNION = StructUnion(
    (),
    (
        ("data", SemanticTokens),
        ("edits", SemanticTokensDelta),
    ),
    lists=False,
)
if TYPE_CHECKING:
    SemanticTokensDeltaResult: TypeAlias = SemanticTokens | SemanticTokensDelta
else:
    SemanticTokensDeltaResult = Annotated[Any, SEMANTIC_TOKENS_DELTA_RESULT_UNION]
