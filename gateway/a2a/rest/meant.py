"""What was probably meant by a request to a path of nobody's. Repeats nothing of it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ....errors.failures import A2AVersion
from ....errors.nearest import closest_match
from ..cards import WELL_KNOWN, WELL_KNOWN_OLD
from .routes import PREFIX_03, ROUTES

if TYPE_CHECKING:
    from ....daemon.settings import Settings

_CUTOFF: Final = 0.6
_LONGEST: Final = 200
"""Characters of a path that are compared."""

_SERVED_WITH: Final = {
    "operations": "http-operations",
    "openapi.json": "http-operations",
    "mcp": "http-mcp",
    "metrics": "http-metrics",
    "page": "http-page",
}
"""The settings that serve paths which begin so."""

_DESCRIPTIONS: Final = frozenset(
    {"docs", "redoc", "swagger", "swagger-ui", "swagger.json", "openapi", "openapi.yaml", "api-docs"}
)
"""Where other servers describe their operations."""

_ID: Final = re.compile(r"[0-9A-Fa-f-]{32,}")


def meant_by(path: str, version: A2AVersion, root: str, settings: Settings) -> str:
    """The nearest path; where none is near, what there is. `root` is where the app is mounted. Of a path that a setting
    would serve, that setting.
    """
    first = path.partition("/")[0]
    first = "openapi.json" if first.lower() in _DESCRIPTIONS else first
    if first in _SERVED_WITH and not getattr(settings, _SERVED_WITH[first].replace("-", "_")):
        at = f"GET {root}/openapi.json" if first == "openapi.json" else "this"
        return f"{at} is served with --{_SERVED_WITH[first]}"
    if first == "openapi.json":
        return f"the operations are described by GET {root}/openapi.json"
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
