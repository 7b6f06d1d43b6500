# Written by tools/protocols from the meta model of LSP 3.17.0. Do not edit.
"""Enumerations that messages and capabilities share."""

from __future__ import annotations

from ...structs import OpenInt, OpenStr

__all__ = [
    "CodeActionKind",
    "CodeActionTag",
    "CompletionItemKind",
    "CompletionItemTag",
    "FoldingRangeKind",
    "InsertTextMode",
    "PositionEncodingKind",
    "SymbolKind",
    "SymbolTag",
]


class CodeActionKind(OpenStr):
    EMPTY = ""
    QUICK_FIX = "quickfix"
    REFACTOR = "refactor"
    REFACTOR_EXTRACT = "refactor.extract"
    REFACTOR_INLINE = "refactor.inline"
    REFACTOR_MOVE = "refactor.move"
    REFACTOR_REWRITE = "refactor.rewrite"
    SOURCE = "source"
    SOURCE_ORGANIZE_IMPORTS = "source.organizeImports"
    SOURCE_FIX_ALL = "source.fixAll"
    NOTEBOOK = "notebook"


class CodeActionTag(OpenInt):
    LLM_GENERATED = 1


class CompletionItemKind(OpenInt):
    TEXT = 1
    METHOD = 2
    FUNCTION = 3
    CONSTRUCTOR = 4
    FIELD = 5
    VARIABLE = 6
    CLASS = 7
    INTERFACE = 8
    MODULE = 9
    PROPERTY = 10
    UNIT = 11
    VALUE = 12
    ENUM = 13
    KEYWORD = 14
    SNIPPET = 15
    COLOR = 16
    FILE = 17
    REFERENCE = 18
    FOLDER = 19
    ENUM_MEMBER = 20
    CONSTANT = 21
    STRUCT = 22
    EVENT = 23
    OPERATOR = 24
    TYPE_PARAMETER = 25


class CompletionItemTag(OpenInt):
    DEPRECATED = 1


class FoldingRangeKind(OpenStr):
    COMMENT = "comment"
    IMPORTS = "imports"
    REGION = "region"


class InsertTextMode(OpenInt):
    AS_IS = 1
    ADJUST_INDENTATION = 2


class PositionEncodingKind(OpenStr):
    UTF8 = "utf-8"
    UTF16 = "utf-16"
    UTF32 = "utf-32"


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
