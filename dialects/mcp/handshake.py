"""How sessions begin, in either generation: `initialize` and `server/discover`. And `ping`, and the level of log messages."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Raw

from ...daemon.connection.handshake import add_initialize, answer_at_once, client_info, run_initializers
from ...daemon.declarations import Prompt, Resource
from ...daemon.operations.context import Context
from ...daemon.operations.service import Service
from ...errors.exceptions import FailureError
from ...errors.failures import InvalidParams
from ...errors.redaction import scrub_known
from .generated import legacy, modern, shared
from .generated.revisions import LEGACY_REVISIONS
from .results import TTL_MS, encode_result
from .revision import NEWEST_LEGACY, SUPPORTED, Params
from .state import McpState

EMPTY: Final = Raw(b"{}")


class LevelParams(Params, frozen=True, kw_only=True):
    level: shared.LoggingLevel


def add_handshake(service: Service, state: McpState) -> None:
    """Add the methods to a service."""
    _add_initialize(service, state)

    @service.query("server/discover", inline=True)
    def discover(params: Params, /) -> Raw:
        """Say what the server can do."""
        found = modern.DiscoverResult(
            cache_scope="private",
            capabilities=modern.ServerCapabilities(**_capabilities(state)),
            instructions=_instructions(state),
            result_type="complete",
            supported_versions=list(SUPPORTED),
            ttl_ms=TTL_MS,
        )
        return state.write(found, params.meta, ttl_ms=TTL_MS)

    answer_at_once(service)

    @service.query(inline=True)
    def ping() -> Raw:
        """Answer."""
        return EMPTY

    answer_at_once(service)

    @service.mutation("logging/setLevel", inline=True)
    def set_level(params: LevelParams, /) -> Raw:
        """Send no log messages that are less severe."""
        state.dialect.log_level = params.level
        return EMPTY


def _add_initialize(service: Service, state: McpState) -> None:
    def initialize(params: dict[str, Any], /) -> dict[str, Any]:  # Any: JSON
        """Agree on a revision."""
        asked = params.get("protocolVersion")
        if not isinstance(asked, str):
            received = "missing" if asked is None else "another type"
            raise FailureError(InvalidParams("protocolVersion", "string", received))
        revision = asked if asked in LEGACY_REVISIONS else NEWEST_LEGACY
        state.agree(revision, client_info(params, revision))
        server = state.server
        result = legacy.InitializeResult(
            capabilities=legacy.ServerCapabilities(**_capabilities(state)),
            instructions=_instructions(state),
            protocol_version=revision,
            server_info=shared.Implementation(name=server.name, version=server.version),
        )
        written: dict[str, Any] = msgspec.json.decode(encode_result(result, state.protocol(None), server))
        return written

    async def initialize_after_hooks(ctx: Context, params: dict[str, Any], /) -> dict[str, Any]:
        result = initialize(params)
        result["capabilities"].update(await run_initializers(ctx, state.connection.initializers, params))
        return result

    add_initialize(service, state.connection.initializers, initialize, initialize_after_hooks)


def _capabilities(state: McpState) -> dict[str, Any]:  # Any: structs of either generation have the same members
    changes = True if state.host.settings.reload else None
    templates = any(resource.is_template for _, resource in state.offered(Resource))
    found: dict[str, Any] = {"logging": {}}
    if state.tools or state.host.catalogue.changes:
        found["tools"] = shared.ServerCapabilitiesTools(list_changed=state.has_changing_tools or None)
    if state.has(Resource):
        found["resources"] = shared.ServerCapabilitiesResources(list_changed=changes, subscribe=True)
    if state.has(Prompt):
        found["prompts"] = shared.ServerCapabilitiesPrompts(list_changed=changes)
    if state.has(Prompt) or templates:
        found["completions"] = {}
    return found


def _instructions(state: McpState) -> str | None:
    """What the services say of themselves, for the model."""
    said = (service.description for service in state.host.catalogue.services if service.description)
    return scrub_known("\n\n".join(said)) or None
