"""A session as one HTML page, for a browser. The page loads nothing, and nothing in a recording can run in it.

The recording goes in as data: JSON whose `<` are escaped, which the page's script writes as text. A policy (CSP) allows
that script, by its hash, and nothing else. All of the page is ASCII, so that no shell and no encoding can change it.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator
from importlib.resources import files
from typing import Final

import msgspec

from ..format import Entry
from .rows import Rows

_SCRIPTS: Final = ("session.js", "timeline.js", "page.js")
_ROWS_AT_ONCE: Final = 500


def page(entries: Iterable[Entry], *, name: str) -> Iterator[str]:
    """The parts of the page, to be written one after the other; a line end may stand between them.

    All entries are read before the first part. Raises what reading them raises.
    """
    session = Rows(entries, name)
    css, script = _file("page.css"), _script()
    # `sandbox` and `frame-ancestors` have no effect in a meta element (CSP3 section 3.3)
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src {_hash(script)}",
            f"style-src {_hash(css)}",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        )
    )
    before, after = _file("page.html").split("DATA\n")
    yield before.replace("POLICY", policy).replace("CSS", css).rstrip()
    yield f'{{"facts":{_data(session.facts)},"rows":['
    for at in range(0, len(session.rows), _ROWS_AT_ONCE):
        yield ("," if at else "") + ",".join(map(_data, session.rows[at : at + _ROWS_AT_ONCE]))
    yield "]}"
    yield after.replace("SCRIPT", script).rstrip()


def _data(value: msgspec.Struct) -> str:
    """JSON that no HTML parser takes for markup."""
    return json.dumps(msgspec.to_builtins(value), separators=(",", ":")).replace("<", "\\u003c")


def _script() -> str:
    """The scripts as one, in a block, so that their names are not the window's."""
    return '"use strict";\n{\n' + "".join(map(_file, _SCRIPTS)) + "}\n"


def _file(name: str) -> str:
    return files(__package__ or "").joinpath(name).read_text("ascii")


def _hash(text: str) -> str:
    """The source expression for an inline element with this content (CSP3 section 2.3.1)."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
