# Written by tools/protocols from the meta model of LSP 3.18.0. Do not edit.
"""Open documents: opened, changed, saved, closed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from ...structs import OpenInt, OpenStr, StructUnion, WireStruct
from .base import Range, TextDocumentIdentifier, VersionedTextDocumentIdentifier

__all__ = [
    "DidChangeTextDocumentParams", "DidCloseTextDocumentParams", "DidOpenTextDocumentParams",
    "DidSaveTextDocumentParams", "LanguageKind", "TextDocumentContentChangeEvent",
    "TextDocumentContentChangePartial", "TextDocumentContentChangeWholeDocument", "TextDocumentItem",
    "TextDocumentSaveReason", "WillSaveTextDocumentParams",
]  # fmt: skip


class LanguageKind(OpenStr):
    ABAP = "abap"
    WINDOWS_BAT = "bat"
    BIB_TEX = "bibtex"
    CLOJURE = "clojure"
    COFFEESCRIPT = "coffeescript"
    C = "c"
    CPP = "cpp"
    C_SHARP = "csharp"
    CSS = "css"
    D = "d"
    DELPHI = "pascal"
    DIFF = "diff"
    DART = "dart"
    DOCKERFILE = "dockerfile"
    ELIXIR = "elixir"
    ERLANG = "erlang"
    F_SHARP = "fsharp"
    GIT_COMMIT = "git-commit"
    GIT_REBASE = "git-rebase"
    GO = "go"
    GROOVY = "groovy"
    HANDLEBARS = "handlebars"
    HASKELL = "haskell"
    HTML = "html"
    INI = "ini"
    JAVA = "java"
    JAVA_SCRIPT = "javascript"
    JAVA_SCRIPT_REACT = "javascriptreact"
    JSON = "json"
    LA_TEX = "latex"
    LESS = "less"
    LUA = "lua"
    MAKEFILE = "makefile"
    MARKDOWN = "markdown"
    OBJECTIVE_C = "objective-c"
    OBJECTIVE_CPP = "objective-cpp"
    PASCAL = "pascal"
    PERL = "perl"
    PERL6 = "perl6"
    PHP = "php"
    POWERSHELL = "powershell"
    PUG = "jade"
    PYTHON = "python"
    R = "r"
    RAZOR = "razor"
    RUBY = "ruby"
    RUST = "rust"
    SCSS = "scss"
    SASS = "sass"
    SCALA = "scala"
    SHADER_LAB = "shaderlab"
    SHELL_SCRIPT = "shellscript"
    SQL = "sql"
    SWIFT = "swift"
    TYPE_SCRIPT = "typescript"
    TYPE_SCRIPT_REACT = "typescriptreact"
    TEX = "tex"
    VISUAL_BASIC = "vb"
    XML = "xml"
    XSL = "xsl"
    YAML = "yaml"
    PLAINTEXT = "plaintext"


class TextDocumentSaveReason(OpenInt):
    MANUAL = 1
    AFTER_DELAY = 2
    FOCUS_OUT = 3


class DidChangeTextDocumentParams(WireStruct, kw_only=True):
    text_document: VersionedTextDocumentIdentifier
    content_changes: list[TextDocumentContentChangeEvent]

    def __post_init__(self) -> None:
        self.content_changes = [TEXT_DOCUMENT_CONTENT_CHANGE_EVENT_UNION.read(item) for item in self.content_changes]


class DidCloseTextDocumentParams(WireStruct, kw_only=True):
    text_document: TextDocumentIdentifier


class DidOpenTextDocumentParams(WireStruct, kw_only=True):
    text_document: TextDocumentItem


class DidSaveTextDocumentParams(WireStruct, kw_only=True):
    text_document: TextDocumentIdentifier
    text: str | None = None


class TextDocumentContentChangePartial(WireStruct, kw_only=True):
    range: Range
    range_length: int | None = None
    text: str


class TextDocumentContentChangeWholeDocument(WireStruct, kw_only=True):
    text: str


class TextDocumentItem(WireStruct, kw_only=True):
    uri: str
    language_id: LanguageKind
    version: int
    text: str


class WillSaveTextDocumentParams(WireStruct, kw_only=True):
    text_document: TextDocumentIdentifier
    reason: TextDocumentSaveReason


TEXT_DOCUMENT_CONTENT_CHANGE_EVENT_UNION = StructUnion(
    (),
    (
        ("range text", TextDocumentContentChangePartial),
        ("text", TextDocumentContentChangeWholeDocument),
    ),
    lists=False,
)
if TYPE_CHECKING:
    TextDocumentContentChangeEvent: TypeAlias = (
        TextDocumentContentChangePartial | TextDocumentContentChangeWholeDocument
    )
else:
    TextDocumentContentChangeEvent = Annotated[Any, TEXT_DOCUMENT_CONTENT_CHANGE_EVENT_UNION]
