"""Keeps the meta model that LSP's modules are written from: names, types and values, and none of its sentences.

`python -P tools/protocols/lsp_source.py metaModel.json` writes it anew from a published one. No package has that of LSP 3.18, so
what its published types (vscode-languageserver-protocol and vscode-languageserver-types 3.18.5) have beyond 3.17.0 with proposals
is added here. A test compares the result with these packages. lsp_3_18.license.txt is the licence of all of them.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from pathlib import Path
from typing import Any, Final  # Any: the meta model is JSON

PUBLISHED: Final = Path(__file__).with_name("lsp_3_18.json.gz")
VERSION: Final = "3.18.0"

_SENTENCES: Final = frozenset({"documentation", "sinceTags", "proposed", "deprecated"})
_STRING: Final = {"kind": "base", "name": "string"}
_BOOLEAN: Final = {"kind": "base", "name": "boolean"}

_MARKUP_MESSAGE: Final = {
    "name": "message",
    "type": {"kind": "or", "items": [_STRING, {"kind": "reference", "name": "MarkupContent"}]},
    "since": VERSION,
}
_MARKUP_SUPPORT: Final = {"name": "markupMessageSupport", "type": _BOOLEAN, "optional": True, "since": VERSION}
_PARTIAL: Final = {"kind": "reference", "name": "PartialResultParams"}
_ENGINES: Final = {
    "name": "RegularExpressionEngineKind",
    "type": _STRING,
    "values": [{"name": "ES2020", "value": "ES2020"}],
    "supportsCustomValues": True,
    "since": VERSION,
}
_PROVIDERS: Final = {
    "textDocument/colorPresentation": ("textDocument.colorProvider", "colorProvider"),
    "callHierarchy/incomingCalls": ("textDocument.callHierarchy", "callHierarchyProvider"),
    "callHierarchy/outgoingCalls": ("textDocument.callHierarchy", "callHierarchyProvider"),
}
"""Capabilities of the client and of the server that the packages give to methods."""


def read() -> dict[str, Any]:
    """Read the meta model."""
    found: dict[str, Any] = json.loads(gzip.decompress(PUBLISHED.read_bytes()))
    return found


def _without_sentences(value: Any) -> Any:
    match value:
        case {"since": str(since)}:
            rest = {key: inner for key, inner in value.items() if key != "since"}
            return {**_without_sentences(rest), "since": re.findall(r"\d+(?:\.\d+)*", since)[0]}
        case dict():
            return {key: _without_sentences(inner) for key, inner in value.items() if key not in _SENTENCES}
        case list():
            return [_without_sentences(inner) for inner in value]
        case _:
            return value


def with_3_18(raw: dict[str, Any]) -> dict[str, Any]:
    """Add what the packages have beyond this model. Adds nothing to a model that has it."""
    structures = {each["name"]: each for each in raw["structures"]}
    _put(structures["Diagnostic"]["properties"], _MARKUP_MESSAGE)
    _put(structures["DiagnosticClientCapabilities"]["properties"], _MARKUP_SUPPORT)
    for name in ("InlayHintParams", "InlineCompletionParams", "InlineValueParams"):
        if _PARTIAL not in structures[name]["mixins"]:
            structures[name]["mixins"].append(_PARTIAL)
    languages = next(each for each in raw["enumerations"] if each["name"] == "LanguageKind")
    _put(languages["values"], {"name": "GitRebase", "value": "git-rebase"})
    _put(languages["values"], {"name": "Plaintext", "value": "plaintext"})
    raw["typeAliases"] = [each for each in raw["typeAliases"] if each["name"] != _ENGINES["name"]]
    _put(raw["enumerations"], _ENGINES)
    for row in raw["requests"]:
        if providers := _PROVIDERS.get(row["method"]):
            row["clientCapability"], row["serverCapability"] = providers
    raw["metaData"]["version"] = VERSION
    return raw


def _put(rows: list[dict[str, Any]], row: dict[str, Any]) -> None:
    """Replace the row of this name, or add it at the end."""
    place = next((index for index, each in enumerate(rows) if each["name"] == row["name"]), len(rows))
    rows[place : place + 1] = [row]


def main(published: Path) -> None:
    """Write the meta model that the tool and the tests read from a published one."""
    model = with_3_18(_without_sentences(json.loads(published.read_text("utf-8"))))
    text = json.dumps(model, separators=(",", ":"))
    PUBLISHED.write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
