# Written by tools/protocols from the meta model of LSP 3.18.0. Do not edit.
"""Hovers and signature help."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from msgspec import UNSET, UnsetType

from ...structs import OpenInt, StructUnion, WireStruct
from .base import MarkupContent, ProgressToken, Range, TextDocumentPositionParams

__all__ = [
    "Hover", "HoverParams", "MarkedString", "MarkedStringWithLanguage", "ParameterInformation", "SignatureHelp",
    "SignatureHelpContext", "SignatureHelpParams", "SignatureHelpTriggerKind", "SignatureInformation",
]  # fmt: skip


class SignatureHelpTriggerKind(OpenInt):
    INVOKED = 1
    TRIGGER_CHARACTER = 2
    CONTENT_CHANGE = 3


class Hover(WireStruct, kw_only=True):
    contents: HoverContents
    range: Range | None = None

    def __post_init__(self) -> None:
        self.contents = HOVER_CONTENTS_UNION.read(self.contents)


class MarkedStringWithLanguage(WireStruct, kw_only=True):
    language: str
    value: str


class HoverParams(TextDocumentPositionParams, kw_only=True):
    work_done_token: ProgressToken | None = None


class ParameterInformation(WireStruct, kw_only=True):
    label: str | tuple[int, int]
    documentation: str | MarkupContent | None = None


class SignatureHelp(WireStruct, kw_only=True):
    signatures: list[SignatureInformation]
    active_signature: int | None = None
    active_parameter: int | None | UnsetType = UNSET


class SignatureHelpContext(WireStruct, kw_only=True):
    trigger_kind: SignatureHelpTriggerKind
    trigger_character: str | None = None
    is_retrigger: bool
    active_signature_help: SignatureHelp | None = None


class SignatureHelpParams(TextDocumentPositionParams, kw_only=True):
    work_done_token: ProgressToken | None = None
    context: SignatureHelpContext | None = None


class SignatureInformation(WireStruct, kw_only=True):
    label: str
    documentation: str | MarkupContent | None = None
    parameters: list[ParameterInformation] | None = None
    active_parameter: int | None | UnsetType = UNSET


MarkedString: TypeAlias = str | MarkedStringWithLanguage

HOVER_CONTENTS_UNION = StructUnion(
    (str,),
    (
        ("kind value", MarkupContent),
        ("language value", MarkedStringWithLanguage),
    ),
    lists=True,
)
if TYPE_CHECKING:
    HoverContents: TypeAlias = MarkupContent | MarkedString | list[MarkedString]
else:
    HoverContents = Annotated[Any, HOVER_CONTENTS_UNION]
