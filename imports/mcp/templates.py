"""URI templates (RFC 6570, levels 1 to 3): their variables, and the URIs that they stand for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

_EXPRESSION: Final = re.compile(r"\{([+#./;?&]?)([A-Za-z0-9_.%]+(?:,[A-Za-z0-9_.%]+)*)\}")
_RESERVED: Final = ":/?#[]@!$&'()*+,;="
_FIRST: Final = {"+": "", "#": "#", ".": ".", "/": "/", ";": ";", "?": "?", "&": "&", "": ""}
_BETWEEN: Final = {"+": ",", "#": ",", ".": ".", "/": "/", ";": ";", "?": "&", "&": "&", "": ","}


def variables_of(template: str) -> tuple[str, ...] | None:
    """The variables, in their order; None for what is no template of these levels."""
    rest = _EXPRESSION.sub("", template)
    if "{" in rest or "}" in rest:
        return None
    names = (name for match in _EXPRESSION.finditer(template) for name in match[2].split(","))
    return tuple(dict.fromkeys(names))


def expand(template: str, values: Mapping[str, str]) -> str:
    """The URI of these values."""

    def fill(match: re.Match[str]) -> str:
        operator, names = match[1], match[2].split(",")
        safe = _RESERVED if operator in ("+", "#") else ""
        parts = [(name, quote(values[name], safe=safe)) for name in names if name in values]
        if operator in (";", "?", "&"):
            shown = [f"{name}={text}" if text or operator != ";" else name for name, text in parts]
        else:
            shown = [text for _, text in parts]
        return _FIRST[operator] + _BETWEEN[operator].join(shown) if shown else ""

    return _EXPRESSION.sub(fill, template)
