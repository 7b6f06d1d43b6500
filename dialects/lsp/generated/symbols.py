# Written by tools/protocols from the meta model of LSP 3.18.0. Do not edit.
"""Symbols, and the hierarchies of calls and types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from ...structs import OpenInt, StructUnion, WireStruct
from .base import Location, ProgressToken, Range, TextDocumentIdentifier, TextDocumentPositionParams

__all__ = [
    "BaseSymbolInformation", "CallHierarchyIncomingCall", "CallHierarchyIncomingCallsParams", "CallHierarchyItem",
    "CallHierarchyOutgoingCall", "CallHierarchyOutgoingCallsParams", "CallHierarchyPrepareParams", "DocumentSymbol",
    "DocumentSymbolParams", "DocumentSymbolResult", "LocationUriOnly", "SymbolInformation", "SymbolKind",
    "SymbolTag", "TypeHierarchyItem", "TypeHierarchyPrepareParams", "TypeHierarchySubtypesParams",
    "TypeHierarchySupertypesParams", "WorkspaceSymbol", "WorkspaceSymbolParams", "WorkspaceSymbolResult",
]  # fmt: skip


class SymbolKind(OpenInt):
    FILE = 1
    MODULE = 2
    NAMESPACE = 3
    PACKAGE = 4
    CLASS = 5
    METHOD = 6
    PROPERTY = 7
    FIELD = 8
    CONSTRUCTOR = 9
    ENUM = 10
    INTERFACE = 11
    FUNCTION = 12
    VARIABLE = 13
    CONSTANT = 14
    STRING = 15
    NUMBER = 16
    BOOLEAN = 17
    ARRAY = 18
    OBJECT = 19
    KEY = 20
    NULL = 21
    ENUM_MEMBER = 22
    STRUCT = 23
    EVENT = 24
    OPERATOR = 25
    TYPE_PARAMETER = 26


class SymbolTag(OpenInt):
    DEPRECATED = 1


class BaseSymbolInformation(WireStruct, kw_only=True):
    name: str
    kind: SymbolKind
    tags: list[SymbolTag] | None = None
    container_name: str | None = None


class CallHierarchyIncomingCall(WireStruct, kw_only=True):
    from_: CallHierarchyItem
    from_ranges: list[Range]


class CallHierarchyIncomingCallsParams(WireStruct, kw_only=True):
    work_done_token: ProgressToken | None = None
    partial_result_token: ProgressToken | None = None
    item: CallHierarchyItem


class CallHierarchyItem(WireStruct, kw_only=True):
    name: str
    kind: SymbolKind
    tags: list[SymbolTag] | None = None
    detail: str | None = None
    uri: str
    range: Range
    selection_range: Range
    data: Any = None


class CallHierarchyOutgoingCall(WireStruct, kw_only=True):
    to: CallHierarchyItem
    from_ranges: list[Range]


class CallHierarchyOutgoingCallsParams(WireStruct, kw_only=True):
    work_done_token: ProgressToken | None = None
    partial_result_token: ProgressToken | None = None
    item: CallHierarchyItem


class CallHierarchyPrepareParams(TextDocumentPositionParams, kw_only=True):
    work_done_token: ProgressToken | None = None


class DocumentSymbol(WireStruct, kw_only=True):
    name: str
    detail: str | None = None
    kind: SymbolKind
    tags: list[SymbolTag] | None = None
    deprecated: bool | None = None
    range: Range
    selection_range: Range
    children: list[DocumentSymbol] | None = None


class DocumentSymbolParams(WireStruct, kw_only=True):
    work_done_token: ProgressToken | None = None
    partial_result_token: ProgressToken | None = None
    text_document: TextDocumentIdentifier


class SymbolInformation(BaseSymbolInformation, kw_only=True):
    deprecated: bool | None = None
    location: Location


class LocationUriOnly(WireStruct, kw_only=True):
    uri: str


class TypeHierarchyItem(WireStruct, kw_only=True):
    name: str
    kind: SymbolKind
    tags: list[SymbolTag] | None = None
    detail: str | None = None
    uri: str
    range: Range
    selection_range: Range
    data: Any = None


class TypeHierarchyPrepareParams(TextDocumentPositionParams, kw_only=True):
    work_done_token: ProgressToken | None = None


class TypeHierarchySubtypesParams(WireStruct, kw_only=True):
    work_done_token: ProgressToken | None = None
    partial_result_token: ProgressToken | None = None
    item: TypeHierarchyItem


class TypeHierarchySupertypesParams(WireStruct, kw_only=True):
    work_done_token: ProgressToken | None = None
    partial_result_token: ProgressToken | None = None
    item: TypeHierarchyItem


class WorkspaceSymbol(BaseSymbolInformation, kw_only=True):
    location: WorkspaceSymbolLocation
    data: Any = None

    def __post_init__(self) -> None:
        self.location = WORKSPACE_SYMBOL_LOCATION_UNION.read(self.location)


class WorkspaceSymbolParams(WireStruct, kw_only=True):
    work_done_token: ProgressToken | None = None
    partial_result_token: ProgressToken | None = None
    query: str


DOCUMENT_SYMBOL_RESULT_UNION = StructUnion(
    (),
    (
        ("kind name range selectionRange", DocumentSymbol),
        ("kind location name", SymbolInformation),
    ),
    lists=True,
)
if TYPE_CHECKING:
    DocumentSymbolResult: TypeAlias = list[SymbolInformation] | list[DocumentSymbol]
else:
    DocumentSymbolResult = Annotated[Any, DOCUMENT_SYMBOL_RESULT_UNION]


WORKSPACE_SYMBOL_LOCATION_UNION = StructUnion(
    (),
    (
        ("range uri", Location),
        ("uri", LocationUriOnly),
    ),
    lists=False,
)
if TYPE_CHECKING:
    WorkspaceSymbolLocation: TypeAlias = Location | LocationUriOnly
else:
    WorkspaceSymbolLocation = Annotated[Any, WORKSPACE_SYMBOL_LOCATION_UNION]


WORKSPACE_SYMBOL_RESULT_UNION = StructUnion(
    (),
    (
        ("kind location name", SymbolInformation),
        ("kind location name", WorkspaceSymbol),
    ),
    lists=True,
)
if TYPE_CHECKING:
    WorkspaceSymbolResult: TypeAlias = list[SymbolInformation] | list[WorkspaceSymbol]
else:
    WorkspaceSymbolResult = Annotated[Any, WORKSPACE_SYMBOL_RESULT_UNION]
