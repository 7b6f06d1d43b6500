"""Names of Python for names of the wire."""

from __future__ import annotations

import keyword
import re

_WORDS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+[0-9]*|[A-Z]+[0-9]*|[0-9]+")


def snake(name: str) -> str:
    """`textDocument` → `text_document`, `io.example/clientInfo` → `client_info`, `_meta` → `meta`, `from` → `from_`."""
    found = "_".join(_WORDS.findall(name.rpartition("/")[2])).lower()
    return f"{found}_" if keyword.iskeyword(found) or found in {"self"} else found


def camel(name: str) -> str:
    """What msgspec makes of a name with `rename="camel"`."""
    first, *rest = name.strip("_").split("_")
    return first + "".join(part.title() for part in rest)


def constant(name: str) -> str:
    """`RefactorExtract` → `REFACTOR_EXTRACT`, `c++` → `C_PLUS_PLUS`, `LaTeX` → `LATEX`."""
    name = name.replace("+", " Plus ").replace("#", " Sharp ").replace("TeX", "Tex")
    words = "_".join(_WORDS.findall(name)).upper()
    return words if words and not words[0].isdigit() else f"N_{words}"


def pascal(name: str) -> str:
    """`agent_message_chunk` → `AgentMessageChunk`."""
    return "".join(word[0].upper() + word[1:] for word in _WORDS.findall(name.rpartition("/")[2]))
