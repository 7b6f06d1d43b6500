"""A client's session in MCP, of either generation: its handshake and its other methods, and what of them stays after a reload.

`initialize` and `server/discover` begin a session. All other methods load when the first of them is called.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, NoReturn, final

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from ...daemon.connection.session import ClientConnection, add_initialize, answer_at_once, client_info, run_initializers
from ...daemon.declarations import Prompt, Resource
from ...daemon.operations.context import Context
from ...daemon.operations.registry import LazyOperations, Registry
from ...daemon.operations.service import Service, service_like
from ...daemon.operations.spec import OperationSpec
from ...errors.exceptions import FailureError
from ...errors.failures import InvalidParams
from ...errors.redaction import scrub_known
from .generated.tables import LEGACY_REVISIONS, MEMBERS
from .revision import APPS, NEWEST_LEGACY, SUPPORTED, TASK_METHODS, TASKS, TTL_MS, Level, Params, modern_members
from .state import ANSWER, ASK, EMPTY, TASK, McpState, Offered
from .tools import SEARCH_METHOD

if TYPE_CHECKING:
    from .seal import Seal, SealedSession

FORWARDS: Final = frozenset({"tools/call", "resources/read", "prompts/get"})

METHODS: Final = FORWARDS | {
    "completion/complete",
    "prompts/list",
    "resources/list",
    "resources/subscribe",
    "resources/templates/list",
    "resources/unsubscribe",
    "subscriptions/listen",
    "tools/list",
}
"""The methods after the handshake."""


@final
class McpSession:
    """Raises `DeclarationError` for operations that MCP can't offer. `saved` is what `save` gave to a program before. `offered`
    is what other sessions offer too.
    """

    def __init__(self, connection: ClientConnection, saved: bytes = b"", offered: Offered | None = None) -> None:
        self._saved = saved
        self._offered = offered or Offered(connection.host)
        self._state = McpState(connection, self._offered)
        self.dialect: Final = self._state.dialect
        self.documents: Final = None

    def registry(self) -> Registry:
        service = service_like(self._offered.methods)
        _add_handshake(service, self._state)
        self._remember(service)
        if self._saved:
            self._state.restore(self._saved)
        asking = {prefix + name for prefix in (ASK, ANSWER) for name in self._offered.questions}
        tasks = {TASK + name for name in self._offered.tasks} | (TASK_METHODS if self._offered.tasks else frozenset())
        return Registry([service], LazyOperations(METHODS | asking | tasks | {SEARCH_METHOD}, self._make_methods))

    def _make_methods(self) -> Iterable[OperationSpec]:
        from .asking import add_asking  # late: until one of them is called
        from .offers import add_prompts, add_resources, add_subscriptions
        from .tool_calls import add_tools

        service = service_like(self._offered.methods)
        for add in (add_asking, add_tools, add_resources, add_prompts, add_subscriptions):
            add(service, self._state)
        if self._offered.tasks:
            from .tasks import add_tasks  # late: few services have any

            add_tasks(service, self._state)
        service.operations = [
            replace(spec, mode="forward") if spec.name in FORWARDS else spec for spec in service.operations
        ]
        self._remember(service)
        return service.operations

    def _remember(self, service: Service) -> None:
        known = self._offered.methods
        known |= {spec.name: replace(spec, invoke=_no_handler) for spec in service.operations if spec.name not in known}

    def save(self) -> bytes:
        return self._state.save()

    def bind(self, subject: str) -> None:
        """From now on states of calls hold for this caller alone."""
        self._state.bind(subject)

    def seal(self, token: str, seal: Seal) -> str | None:
        """Seal what another daemon needs to go on with the session. None before `initialize`, and where it is too long."""
        revision = self._state.revision
        return None if revision is None else seal.close_session(token, revision, self._state.client)

    def resume(self, sealed: SealedSession) -> None:
        """Go on with the session of another daemon. Raises `FailureError(Overloaded)` without memory for it."""
        self._state.agree(sealed.revision, sealed.client)


def _no_handler(ctx: object, arguments: object) -> NoReturn:
    raise AssertionError("each session has handlers of its own")


class LevelParams(Params, frozen=True, kw_only=True):
    level: Level


def _add_handshake(service: Service, state: McpState) -> None:
    _add_initialize(service, state)

    @service.query("server/discover", inline=True)
    def discover(params: Params, /) -> Raw:
        """Say what the server can do."""
        capabilities = _capabilities(state)
        if state.tasks:
            capabilities["extensions"] = {TASKS: {}, **capabilities.get("extensions", {})}
        found = {"capabilities": capabilities, "supportedVersions": SUPPORTED, **_instructions(state)}
        return Raw(msgspec.json.encode(modern_members(found, state.server, ttl_ms=TTL_MS)))

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
        since = MEMBERS["ServerCapabilities"]
        return {
            "capabilities": {
                name: one for name, one in _capabilities(state).items() if since.get(name, "") <= revision
            },
            "protocolVersion": revision,
            "serverInfo": state.server,
            **_instructions(state),
        }

    async def initialize_after_hooks(ctx: Context, params: dict[str, Any], /) -> dict[str, Any]:
        result = initialize(params)
        result["capabilities"].update(await run_initializers(ctx, state.connection.host.catalogue.initializers, params))
        return result

    add_initialize(service, state.connection.host.catalogue.initializers, initialize, initialize_after_hooks)


def _capabilities(state: McpState) -> dict[str, dict[str, Any]]:  # Any: JSON
    imported = state.imported
    changes = {"listChanged": True} if state.host.settings.reload or imported is not None else {}
    templates = any(resource.is_template for _, resource in state.offered(Resource))
    completes = templates or (imported is not None and imported.has_completions)
    found: dict[str, dict[str, Any]] = {"logging": {}}
    if state.tools or state.host.catalogue.changes:
        found["tools"] = {"listChanged": True} if state.has_changing_tools else {}
    if state.has(Resource):
        found["resources"] = {**changes, "subscribe": True}
    if state.has(Prompt):
        found["prompts"] = changes
    if state.has(Prompt) or completes:
        found["completions"] = {}
    if state.has_apps:
        found["extensions"] = {APPS: {}}
    return found


def _instructions(state: McpState) -> dict[str, str]:
    """Join the descriptions of the services, for the model."""
    said = (service.description for service in state.host.catalogue.services if service.description)
    text = scrub_known("\n\n".join(said))
    return {"instructions": text} if text else {}
