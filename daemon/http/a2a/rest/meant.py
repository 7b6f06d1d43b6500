"""What was probably meant by a request to a path of nobody's. Repeats nothing of it."""

from __future__ import annotations

import re
from typing import Final

from .....errors.failures import A2AVersion
from .....errors.nearest import closest_match
from ..cards import WELL_KNOWN, WELL_KNOWN_OLD
from .routes import PREFIX_03, ROUTES

_CUTOFF: Final = 0.6
_LONGEST: Final = 200
"""Characters of a path that are compared."""

_ID: Final = re.compile(r"[0-9A-Fa-f-]{32,}")


def meant_by(path: str, version: A2AVersion, root: str) -> str:
    """The nearest path; where none is near, what there is. `root` is where the app is mounted."""
    card = f"GET {root}{WELL_KNOWN}"
    known = {WELL_KNOWN: card, WELL_KNOWN_OLD: card}
    for route in reversed(ROUTES[version]):
        at = f"/{PREFIX_03}/{route.path}" if version == "0.3" else f"/{route.path}"
        known[at] = known[f"/{route.method}"] = f"{route.verb} {root}{at}"
    near = closest_match("/" + _ID.sub("{id}", path[:_LONGEST]), known, cutoff=_CUTOFF)
    return (
        f"nearest: {known[near]}"
        if near
        else f"JSON-RPC is POST {root}/, HTTP+JSON such as POST {root}/message:send, the agent card {card}"
    )
