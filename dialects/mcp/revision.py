"""Finds the revision in which a request is to be answered, from its `_meta` and the session. Answers nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias, get_args

import msgspec

from ...daemon.operations.registry import ServerInfo
from ...daemon.operations.spec import TaskUse
from ...errors.decoders import DECODE_ERRORS, decoder_for
from ...errors.exceptions import FailureError
from ...errors.failures import DomainFailure, Failure, InvalidParams, MethodNotFound
from .generated.tables import LEGACY_METHODS, LEGACY_REVISIONS, MODERN_METHODS, MODERN_REVISION

NEWEST_LEGACY: Final = LEGACY_REVISIONS[-1]
SUPPORTED: Final = (MODERN_REVISION,)
"""The revisions that a request may name in its `_meta`. The legacy revisions are negotiated by `initialize`."""

UNSUPPORTED_VERSION: Final = -32022
MISSING_CAPABILITY: Final = -32021
RESOURCE_NOT_FOUND: Final = -32002
RESERVED_NUMBERS: Final = range(-32099, -32019)
"""Numbers that only the protocol itself may define."""

TTL_MS: Final = 60_000
"""How long a modern client may keep what can't change while the daemon runs."""

MAX_META_BYTES: Final = 64 * 1024
"""Bytes that `_meta` of a request may take: its values are kept as long as the request, and decoded they take far more."""
MAX_TOKEN_LENGTH: Final = 1024
"""Characters of a progress token. A request with a longer one is told no progress, which the protocol leaves to the server."""

_PREFIX: Final = "io.modelcontextprotocol/"

TASKS: Final = f"{_PREFIX}tasks"
"""The extension that lets tools run as tasks."""
TASK_METHODS: Final = frozenset({"tasks/cancel", "tasks/get", "tasks/update"})

APPS: Final = f"{_PREFIX}ui"
"""The extension that lets hosts show pages for tools, MCP Apps."""
APP_TYPE: Final = "text/html;profile=mcp-app"
"""The media type of an app's page (MCP Apps 2026-01-26, UI Resource Format)."""
APP_SCHEME: Final = "ui://"

Level: TypeAlias = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
"""Of log messages, the least severe first."""
LEVELS: Final[tuple[str, ...]] = get_args(Level)


class Meta(msgspec.Struct, frozen=True):
    """The members of `_meta` that matter, whatever their types. Of legacy requests it has the token and the trace alone."""

    protocol_version: Any = msgspec.field(name=f"{_PREFIX}protocolVersion", default=None)
    client_info: Any = msgspec.field(name=f"{_PREFIX}clientInfo", default=None)
    client_capabilities: Any = msgspec.field(name=f"{_PREFIX}clientCapabilities", default=None)
    log_level: Any = msgspec.field(name=f"{_PREFIX}logLevel", default=None)
    token: Any = msgspec.field(name="progressToken", default=None)
    traceparent: Any = None
    tracestate: Any = None
    baggage: Any = None


class Params(msgspec.Struct, frozen=True, kw_only=True):
    """The members that the params of every method may have."""

    meta: Meta | None = msgspec.field(name="_meta", default=None)


class ProtocolRevision(msgspec.Struct, frozen=True):
    """How one request is to be answered. `log_level` is None where the client wants no log messages."""

    revision: str
    token: str | int | None = None
    log_level: str | None = None
    capabilities: dict[str, Any] = {}

    @property
    def modern(self) -> bool:
        return self.revision == MODERN_REVISION

    def has(self, revision: str) -> bool:
        """Whether the revision of the request is this one, or a later one."""
        return self.revision >= revision


def revision_of(meta: Meta | None, legacy: ProtocolRevision) -> ProtocolRevision:
    """The protocol of a request with this `_meta`; `legacy` is that of the session's requests without a version of their own."""
    if meta is None:
        return legacy
    token = meta.token
    if not (type(token) is int or (isinstance(token, str) and len(token) <= MAX_TOKEN_LENGTH)):
        token = None
    if meta.protocol_version is None:
        return msgspec.structs.replace(legacy, token=token)
    level = meta.log_level if meta.log_level in LEVELS else None
    return ProtocolRevision(MODERN_REVISION, token, level, meta.client_capabilities or {})


class _Enclosing(msgspec.Struct):
    meta: msgspec.Raw = msgspec.field(name="_meta", default=msgspec.Raw(b"null"))


def meta_of(params: msgspec.Raw | None) -> Meta | InvalidParams | None:
    """`_meta` of these params; None where there is none that can be read, and a failure for one that is too large."""
    if params is None:
        return None
    try:
        text = decoder_for(_Enclosing)(params).meta
        if len(memoryview(text)) > MAX_META_BYTES:
            return InvalidParams("_meta", f"at most {MAX_META_BYTES} bytes", "more")
        meta: Meta | None = decoder_for(Meta | None)(text)
    except DECODE_ERRORS:
        return None
    return meta


def refusal(method: str, meta: Meta | None, revision: str) -> Failure | None:
    """Why a request is not taken; None for one that is. `revision` is that of requests without a version of their own."""
    if meta is None or meta.protocol_version is None:
        since = LEGACY_METHODS.get(method)
        if since is None and (method in MODERN_METHODS or method in TASK_METHODS):
            return MISSING_META
        return MethodNotFound() if since is None or since > revision else None
    if meta.protocol_version not in SUPPORTED:
        return _modern_refusal(meta)
    if method not in MODERN_METHODS and method not in TASK_METHODS:
        return MethodNotFound()
    if not isinstance(meta.client_capabilities, dict):
        received = "missing" if meta.client_capabilities is None else "another type"
        return InvalidParams(f"_meta.{_PREFIX}clientCapabilities", "object", received)
    if meta.log_level is not None and meta.log_level not in LEVELS:
        return InvalidParams(f"_meta.{_PREFIX}logLevel", "one of", "another value", LEVELS)
    return None


MISSING_META: Final = InvalidParams("_meta", f"an object with {_PREFIX}protocolVersion", "missing")


def _modern_refusal(meta: Meta) -> Failure:
    asked = meta.protocol_version
    if not isinstance(asked, str):
        return InvalidParams(f"_meta.{_PREFIX}protocolVersion", "string", "another type")
    shown = asked if len(asked) <= 32 and asked.isascii() and asked.isprintable() else ""
    return own_error(UNSUPPORTED_VERSION, "Unsupported protocol version", {"requested": shown, "supported": SUPPORTED})


def missing_capability(*names: str) -> Failure:
    """The client lacks these capabilities, which the request needs: `sampling`, or one of its modes, `elicitation.url`."""
    needed: dict[str, dict[str, Any]] = {}
    for name, _, mode in (each.partition(".") for each in names):
        needed.setdefault(name, {}).update({mode: {}} if mode else {})
    return own_error(MISSING_CAPABILITY, "Missing required client capability", {"requiredCapabilities": needed})


def wants_task(use: TaskUse, protocol: ProtocolRevision) -> bool:
    """Tell whether a call becomes a task. Raises `FailureError` where it must, and the client can't take one.

    A client of an earlier revision knows no tasks; it waits for the result.
    """
    if not protocol.modern:
        return False
    is_able = TASKS in (protocol.capabilities.get("extensions") or {})
    if use == "required" and not is_able:
        raise FailureError(missing_capability(f"extensions.{TASKS}"))
    return is_able


def shows_apps(capabilities: Mapping[str, Any]) -> bool:
    """Whether a client with these capabilities shows pages of MCP Apps (2026-01-26, Client<>Server Capability Negotiation)."""
    extensions = capabilities.get("extensions")
    settings = extensions.get(APPS) if isinstance(extensions, dict) else None
    types = settings.get("mimeTypes") if isinstance(settings, dict) else None
    return isinstance(types, list) and APP_TYPE in types


PROTOCOL_ERROR: Final = "MCP"
"""The code of failures whose data are their details alone, as the protocol defines them."""


def is_own(failure: Failure) -> bool:
    """Whether it is an error of the protocol's own."""
    return isinstance(failure, DomainFailure) and failure.code == PROTOCOL_ERROR


def unknown(what: str, name: str, *, param: str, expected: str = "") -> FailureError:
    """The error for a tool, a prompt or a resource that is not there. It names it by a plain word alone."""
    from ...daemon.operations.input_errors import is_plain  # late: only errors need it

    named = f"{what} {name}" if is_plain(name) else what
    return FailureError(InvalidParams(param, expected or f"the name of a {what}", "another value", unknown=named))


def own_error(number: int, message: str, data: object) -> DomainFailure:
    """An error of the protocol's own."""
    return DomainFailure(
        PROTOCOL_ERROR, message, details=msgspec.Raw(msgspec.json.encode(data)), http_status=400, number=number
    )


def modern_members(
    members: dict[str, Any],  # Any: JSON
    server: ServerInfo,
    *,
    ttl_ms: int | None = None,
    result_type: str = "complete",
) -> dict[str, Any]:
    """The members of a result of 2026-07-28."""
    members["resultType"] = result_type
    members["_meta"] = members.get("_meta", {}) | {
        f"{_PREFIX}serverInfo": {"name": server.name, "version": server.version}
    }
    if ttl_ms is not None:
        members |= {"ttlMs": ttl_ms, "cacheScope": "private"}
    return members
