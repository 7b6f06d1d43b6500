"""What of a language server's announcement an editor would pass over: members that LSP does not name.

Reads the tables of the meta model. Starts nothing and asks nobody.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...dialects.lsp.declarations import SIMILAR
from ...dialects.lsp.generated.tables import OPTIONS
from ...errors.nearest import closest_match


def unknown_members(given: Mapping[str, Any], options: str = "ServerCapabilities", path: str = "") -> Iterator[str]:
    """Yield a line for each member that LSP's struct of this name does not have, or that can't have such a value."""
    for name, value in given.items():
        where = f"{path}{name}"
        member = OPTIONS[options].get(name)
        if member is None:
            near = closest_match(name, OPTIONS[options], cutoff=SIMILAR)
            yield f"{where} is no member of LSP's {options}{_nearest(near)}; editors ignore it"
            continue
        inner = [each for each in member["types"] if each in OPTIONS]
        if isinstance(value, dict) and inner:
            kinds = [list(unknown_members(value, each, f"{where}.")) for each in inner]
            yield from min(kinds, key=len)
        elif {*inner, "bool"} >= {*member["types"]} and not ("bool" in member["types"] and isinstance(value, bool)):
            yield f"{where} must be {' | '.join(member['types'])} in LSP"


def _nearest(near: str) -> str:
    return f"; nearest: {near}" if near else ""
