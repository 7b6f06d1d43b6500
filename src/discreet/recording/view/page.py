"""A session as one HTML page, for a browser. The page loads nothing, and nothing in a recording can run in it.

The recording goes in as data: JSON whose `<` are escaped, which the page's script writes as text. A policy (CSP) allows
that script, by its hash, and nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from ...pages.inline import DOM, PALETTE, policy, script_of, styles_of, text_of
from ..format import Entry
from .rows import Rows

_HERE: Final = __package__ or ""
_SCRIPTS: Final = tuple((_HERE, name) for name in ("session.js", "timeline.js", "page.js"))
_ROWS_AT_ONCE: Final = 500


def page(entries: Iterable[Entry], *, name: str) -> Iterator[str]:
    """The parts of the page, to be written one after the other; a line end may stand between them.

    All entries are read before the first part. Raises what reading them raises.
    """
    session = Rows(entries, name)
    css = styles_of(text_of(PALETTE, (_HERE, "page.css")))
    script = script_of(text_of(DOM, *_SCRIPTS))
    before, after = text_of((_HERE, "page.html")).split("DATA\n")
    yield before.replace("POLICY", policy(css, script)).replace("CSS", css).rstrip()
    yield f'{{"facts":{_data(session.facts)},"rows":['
    for at in range(0, len(session.rows), _ROWS_AT_ONCE):
        yield ("," if at else "") + ",".join(map(_data, session.rows[at : at + _ROWS_AT_ONCE]))
    yield "]}"
    yield after.replace("SCRIPT", script).rstrip()


def _data(value: msgspec.Struct) -> str:
    """JSON that no HTML parser takes for markup."""
    return json.dumps(msgspec.to_builtins(value), separators=(",", ":")).replace("<", "\\u003c")
