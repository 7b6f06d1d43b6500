"""Strings as PostgreSQL's type `text` takes them: without NUL and without lone surrogates. Changes no others."""

from __future__ import annotations

import re
from typing import Final

_ESCAPE: Final = "\x1a"
"""SUBSTITUTE begins an escape, and so is escaped itself."""

_escaped: Final = re.compile("[\x00\x1a\ud800-\udfff]")
_escapes: Final = re.compile("\x1a([0-9a-f]{4})")


def to_text(value: str) -> str:
    """Different strings give different texts."""
    return _escaped.sub(lambda found: f"{_ESCAPE}{ord(found[0]):04x}", value)


def from_text(text: str) -> str:
    """The string that `to_text` made the text from."""
    return _escapes.sub(lambda found: chr(int(found[1], 16)), text) if _ESCAPE in text else text
