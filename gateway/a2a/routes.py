"""Finds the method that a path means: the tables of HTTP+JSON (A2A 1.0, section 11.3; for 0.3 its `a2a.proto`), a look-up, and
a hint for an unknown path. Decodes no values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Literal, TypeAlias
from urllib.parse import unquote_to_bytes

import msgspec

from ...errors.failures import A2AVersion

if TYPE_CHECKING:
    from ...daemon.settings import Settings

WELL_KNOWN: Final = "/.well-known/agent-card.json"
WELL_KNOWN_OLD: Final = "/.well-known/agent.json"
"""The name before A2A 0.3.0."""

CARD_PATHS: Final = frozenset({WELL_KNOWN, WELL_KNOWN_OLD})

Verb: TypeAlias = Literal["GET", "POST", "DELETE"]


class Route(msgspec.Struct, frozen=True):
    """One row. In `path`, `{name}` is a segment that holds the param of this name; such are every second segment. The
    other params are the body of a POST, which may be missing unless `needs_body`, or the query."""

    verb: Verb
    path: str
    method: str
    needs_body: bool = False


ROUTES: Final[Mapping[A2AVersion, tuple[Route, ...]]] = {
    "1.0": (
        Route("POST", "message:send", "SendMessage", needs_body=True),
        Route("POST", "message:stream", "SendStreamingMessage", needs_body=True),
        Route("GET", "tasks", "ListTasks"),
        Route("GET", "tasks/{id}", "GetTask"),
        Route("POST", "tasks/{id}:cancel", "CancelTask"),
        Route("POST", "tasks/{id}:subscribe", "SubscribeToTask"),
        Route("GET", "tasks/{id}:subscribe", "SubscribeToTask"),  # so the protobuf
        Route("POST", "tasks/{taskId}/pushNotificationConfigs", "CreateTaskPushNotificationConfig", needs_body=True),
        Route("GET", "tasks/{taskId}/pushNotificationConfigs", "ListTaskPushNotificationConfigs"),
        Route("GET", "tasks/{taskId}/pushNotificationConfigs/{id}", "GetTaskPushNotificationConfig"),
        Route("DELETE", "tasks/{taskId}/pushNotificationConfigs/{id}", "DeleteTaskPushNotificationConfig"),
        Route("GET", "extendedAgentCard", "GetExtendedAgentCard"),
    ),
    "0.3": (
        Route("POST", "message:send", "message/send", needs_body=True),
        Route("POST", "message:stream", "message/stream", needs_body=True),
        Route("GET", "tasks/{id}", "tasks/get"),
        Route("POST", "tasks/{id}:cancel", "tasks/cancel"),
        Route("GET", "tasks/{id}:subscribe", "tasks/resubscribe"),
        Route("POST", "tasks/{id}:subscribe", "tasks/resubscribe"),
        Route("POST", "tasks/{id}/pushNotificationConfigs", "tasks/pushNotificationConfig/set", needs_body=True),
        Route("GET", "tasks/{id}/pushNotificationConfigs", "tasks/pushNotificationConfig/list"),
        Route(
            "GET", "tasks/{id}/pushNotificationConfigs/{pushNotificationConfigId}", "tasks/pushNotificationConfig/get"
        ),
        Route(
            "DELETE",
            "tasks/{id}/pushNotificationConfigs/{pushNotificationConfigId}",
            "tasks/pushNotificationConfig/delete",
        ),
        Route("GET", "card", "agent/getAuthenticatedExtendedCard"),
    ),
}

PREFIX_03: Final = "v1"
"""The first segment of every path of 0.3. In 1.0 it would be a tenant."""


class Found(msgspec.Struct, frozen=True):
    """A route, and the params that the path holds."""

    route: Route
    params: Mapping[str, str]


class NotAllowed(msgspec.Struct, frozen=True):
    """The path is known, but not with this verb."""

    allowed: tuple[Verb, ...]


def find_route(verb: str, path: str, version: A2AVersion) -> Found | NotAllowed | None:
    """Find the method of a request by its path, percent-encoded and without the leading slash; None for an unknown path.

    A path of 0.3 is one only where the client asks for no other version.
    """
    segments = path.split("/")
    if "" in segments:
        return None
    if version == "0.3" and segments[0] == PREFIX_03:
        return _find(verb, segments[1:], "0.3", {})
    without_tenant = _find(verb, segments, "1.0", {})
    return without_tenant or _find(verb, segments[1:], "1.0", {"tenant": _decoded(segments[0])})


def version_of_path(path: str, version: A2AVersion) -> A2AVersion:
    """The version of the binding that a path belongs to."""
    return "0.3" if version == "0.3" and path.partition("/")[0] == PREFIX_03 else "1.0"


def path_of(route: Route, version: A2AVersion, *, tenant: bool) -> str:
    """The path of a route as a template, from the root on."""
    if version == "0.3":
        return f"/{PREFIX_03}/{route.path}"
    return f"/{{tenant}}/{route.path}" if tenant else f"/{route.path}"


def _find(verb: str, segments: list[str], version: A2AVersion, params: dict[str, str]) -> Found | NotAllowed | None:
    shape, values = _shape(segments)
    routes = _BY_SHAPE[version].get(shape)
    if routes is None:
        return None
    found = routes.get(verb)
    if found is None:
        return NotAllowed(tuple(each.verb for each, _ in routes.values()))
    route, names = found
    return Found(route, {**params, **dict(zip(names, map(_decoded, values), strict=True))})


def _shape(segments: list[str]) -> tuple[str, list[str]]:
    """A path without its values, and these. A verb of the task may stand behind one."""
    literal: list[str] = []
    values: list[str] = []
    for index, segment in enumerate(segments):
        if index % 2 == 0:
            literal.append(segment)
            continue
        value, colon, action = segment.rpartition(":")
        if colon and value and action in _ACTIONS:
            literal.append(f"{{}}:{action}")
            values.append(value)
        else:
            literal.append("{}")
            values.append(segment)
    return "/".join(literal), values


_ACTIONS: Final = frozenset({"cancel", "subscribe"})


def _decoded(segment: str) -> str:
    return unquote_to_bytes(segment).decode(errors="replace")


def _by_shape(routes: tuple[Route, ...]) -> Mapping[str, Mapping[str, tuple[Route, list[str]]]]:
    found: dict[str, dict[str, tuple[Route, list[str]]]] = {}
    for route in routes:
        shape, names = _shape(route.path.split("/"))
        found.setdefault(shape, {})[route.verb] = route, [name.strip("{}") for name in names]
    return found


_BY_SHAPE: Final = {version: _by_shape(routes) for version, routes in ROUTES.items()}


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
"""Paths at which other servers describe their operations."""

_ID: Final = re.compile(r"[0-9A-Fa-f-]{32,}")


def meant_by(path: str, version: A2AVersion, root: str, settings: Settings) -> str:
    """The nearest path; where none is near, what there is. `root` is where the app is mounted. Of a path that a setting
    would serve, that setting.
    """
    from ...errors.nearest import closest_match  # late: only errors need it

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
        at = path_of(route, version, tenant=False)
        known[at] = known[f"/{route.method}"] = f"{route.verb} {root}{at}"
    near = closest_match("/" + _ID.sub("{id}", path[:_LONGEST]), known)
    return (
        f"nearest: {known[near]}"
        if near
        else f"JSON-RPC is POST {root}/, HTTP+JSON such as POST {root}/message:send, the agent card {card}"
    )
