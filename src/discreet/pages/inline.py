"""A web page in one document. Its policy (CSP) allows the styles and the script that it has, by their hashes, and nothing else.

All files are ASCII, so that no shell and no encoding can change a page, or its hashes.
"""

from __future__ import annotations

import base64
import hashlib
import re
from importlib.resources import files
from typing import Final

PALETTE: Final = (__package__ or "", "palette.css")
DOM: Final = (__package__ or "", "dom.js")
MESSAGES: Final = (__package__ or "", "messages.js")
MESSAGES_CSS: Final = (__package__ or "", "messages.css")


_LAYOUT: Final = re.compile(r"^(?: *//.*\n| +)", re.MULTILINE)
"""Indentation, and lines that are a comment: a tenth of a script."""

_AROUND: Final = re.compile(r"\s*([{};,])\s*|(?<=\w)(:) ")
"""White space in styles, but for that between selectors. It would be taken out of strings, too."""


def text_of(*names: tuple[str, str]) -> str:
    """Files one behind the other, each named by its package and its name there, without their comments and indentation."""
    return "".join(_LAYOUT.sub("", files(package).joinpath(name).read_text("ascii")) for package, name in names)


def styles_of(text: str) -> str:
    """Styles without the white space that means nothing."""
    return _AROUND.sub(r"\1\2", text).replace(";}", "}")


def script_of(*texts: str) -> str:
    """Scripts as one, in a block, so that their names are not the window's."""
    return '"use strict";\n{\n' + "".join(texts) + "}\n"


def policy(css: str, script: str, *more: str) -> str:
    """The policy of the page whose style element has this text, and whose script element has that, with further
    directives."""
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {_hash(script)}",
            f"style-src {_hash(css)}",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
            *more,
        )
    )


def _hash(text: str) -> str:
    """The source expression for an inline element with this content (CSP3 section 2.3.1)."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
