# Written by tools/protocols from the meta model of LSP 3.17.0. Do not edit.
"""Messages, and documents to show."""

from __future__ import annotations

from ...structs import OpenInt, WireStruct
from .base import Range

__all__ = [
    "LogMessageParams", "MessageActionItem", "MessageType", "ShowDocumentParams", "ShowDocumentResult",
    "ShowMessageParams", "ShowMessageRequestParams",
]  # fmt: skip


class MessageType(OpenInt):
    ERROR = 1
    WARNING = 2
    INFO = 3
    LOG = 4
    DEBUG = 5


class LogMessageParams(WireStruct, kw_only=True):
    type: MessageType
    message: str


class MessageActionItem(WireStruct, kw_only=True):
    title: str


class ShowDocumentParams(WireStruct, kw_only=True):
    uri: str
    external: bool | None = None
    take_focus: bool | None = None
    selection: Range | None = None


class ShowDocumentResult(WireStruct, kw_only=True):
    success: bool


class ShowMessageParams(WireStruct, kw_only=True):
    type: MessageType
    message: str


class ShowMessageRequestParams(WireStruct, kw_only=True):
    type: MessageType
    message: str
    actions: list[MessageActionItem] | None = None
