"""Writes the helper modules of jedi-language-server with other import lines: python lay_out.py FOLDER.

The folder is then the package `jedi_port`: server.py from here, and the modules of the installed jedi-language-server that know
jedi and not pygls, in which nothing is changed but the names of LSP's types.
"""

from __future__ import annotations

import re
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

MODULES = (
    "constants",
    "initialization_options",
    "jedi_utils",
    "notebook_utils",
    "pygls_utils",
    "text_edit_utils",
    "type_map",
)
ENUMS = "CompletionItemKind|DiagnosticSeverity|InsertTextFormat|MarkupKind|SemanticTokenTypes|SymbolKind"

CHANGES = [
    (r"from lsprotocol\.types import", "from discreet.lsp import"),
    (
        r"from pygls\.workspace import TextDocument, Workspace",
        "from discreet.lsp import TextDocument\nWorkspace = object",
    ),
    (r"from pygls\.workspace import TextDocument", "from discreet.lsp import TextDocument"),
    (r"from pygls\.workspace import Workspace", "Workspace = object"),
    (r"from pygls\.lsp\.server import LanguageServer", ""),
    (r"    NotebookDocument,\n", ""),  # for an annotation: here it is the notebook of ctx.documents
    (r"notebook_document: NotebookDocument", "notebook_document"),
    (r"\nimport attrs\n", "\nimport msgspec\n"),
    (r"attrs\.evolve", "msgspec.structs.replace"),
    (r"\.source\b", ".text"),
    (r"word_at_position", "word_at"),
    (r'\n\s+kind="rename",', ""),  # the struct knows
]
"""What an author changes by hand in these modules: imports, and pygls' names of a document's members."""


def upper(match: re.Match[str]) -> str:
    return f"{match[1]}.{re.sub(r'(?<=[a-z])(?=[A-Z])', '_', match[2]).upper()}"


def lay_out(folder: Path) -> None:
    package = folder / "jedi_port"
    package.mkdir(parents=True, exist_ok=True)
    (package / "__init__.py").write_text("")
    shutil.copy(Path(__file__).parent / "server.py", package)
    spec = find_spec("jedi_language_server")
    assert spec is not None, "install jedi-language-server 0.47.0"
    assert spec.origin is not None
    for module in MODULES:
        text = (Path(spec.origin).parent / f"{module}.py").read_text()
        for pattern, new in CHANGES:
            text = re.sub(pattern, new, text)
        text = re.sub(rf"\b({ENUMS})\.([A-Z]\w+)", upper, text)
        if module == "notebook_utils":
            text = text[
                : text.index('T_ls = TypeVar("T_ls"')
            ]  # the rest is a decorator for pygls' handlers: see server.py
        (package / f"{module}.py").write_text(text)


if __name__ == "__main__":
    lay_out(Path(sys.argv[1]))
