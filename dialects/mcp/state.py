"""Holds the offers to all sessions, and the state of one session, such as the revision that was agreed on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property, partial
from types import UnionType
from typing import TYPE_CHECKING, Any, Final, final

import msgspec
from msgspec import Raw, Struct

from ...daemon.connection.session import ClientConnection
from ...daemon.declarations import SERVER_ERROR, Foreign, Offer, Prompt, Resource, asks_of, foreign_server
from ...daemon.logs import log
from ...daemon.operations.request import ClientInfo
from ...daemon.operations.service import DeclarationError
from ...daemon.operations.spec import OperationSpec
from ...errors.decoders import decoder_for
from ...errors.exceptions import FailureError
from ...errors.failures import DomainFailure
from .dialect import SUBSCRIPTION_ID, McpDialect, SubscriptionFilter
from .revision import (
    APP_SCHEME,
    MISSING_META,
    NEWEST_LEGACY,
    RESERVED_NUMBERS,
    Meta,
    ProtocolRevision,
    refusal,
    revision_of,
    shows_apps,
)
from .tools import CALL_TOOL, SEARCH_TOOLS, Tool, tool_name, tools_of

if TYPE_CHECKING:
    from ...daemon.host import Host
    from ...daemon.operations.context import Context
    from ...daemon.operations.registry import ServerInfo
    from ...daemon.operations.spec import TaskUse
    from ...errors.failures import Failure
    from .imported import ImportedOffers
    from .questions import Questions
    from .seal import Seal
    from .tool_search import ToolIndex


EMPTY: Final = Raw(b"{}")

ASK: Final = "$ask/"
"""Begins methods that only forward calls reach. What follows is the operation that is to run."""
ANSWER: Final = "$answer/"
"""The prefix for modern clients, whose calls never wait for an answer."""
TASK: Final = "$task/"
"""The prefix of calls that become tasks."""


class Saved(Struct, rename="camel"):
    """The state for the next program, after a reload."""

    revision: str | None
    client: ClientInfo
    log_level: str | None
    subscribed: list[str]
    seal: list[bytes]
    listeners: dict[str, SubscriptionFilter]


@final
class Offered:
    """A host's offers to clients of MCP: for all sessions. Raises `DeclarationError` for an operation that MCP can't offer."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._change_count = host.change_count
        specs = host.catalogue.operations
        self._tools = tools_of(specs)
        self._tool_index: ToolIndex | None = None
        if host.settings.tool_search and (taken := {SEARCH_TOOLS, CALL_TOOL} & self._tools.keys()):
            raise DeclarationError(f"--tool-search has a tool {min(taken)} of its own; rename the operation")
        self.offers = [
            spec for spec in specs if isinstance(spec.offer, Resource | Prompt) and spec.visibility == "external"
        ]
        _check_numbers(specs)
        _check_offers(self.offers)
        _check_links(self._tools.values(), self.offers)
        self._imported = self._imported_now()
        callable_ = (*(tool.spec for tool in self.tools.values()), *self.offers)
        asking = [spec for spec in callable_ if asks_of(spec.input.type)]
        self.questions: dict[str, Questions] = {}
        """What the operations ask for that do. None does that comes later."""
        if asking:
            from .questions import Questions  # late: few operations ask

            self.questions = {spec.name: Questions(spec) for spec in asking}
        self.shares_keys: Final = host.settings.mcp_key is not None
        """Whether other daemons may open what is sealed here."""
        self.tasks: Final[dict[str, TaskUse]] = {
            each.spec.name: each.spec.task for each in self._tools.values() if each.spec.task is not None
        }
        """The operations whose calls may be tasks, and whether they must."""
        if self.shares_keys:
            _ = self.seal  # a file that can't be read fails at the start
        self.methods: dict[str, OperationSpec] = {}
        """The methods of a session that was opened before. Those of the next one differ in their handlers alone."""

    @cached_property
    def seal(self) -> Seal:
        """The seal of what clients keep for the server. Raises `AppError` for a file of keys that can't be read."""
        from .seal import Seal, random_keys, read_keys  # late: few clients are asked

        path = self._host.settings.mcp_key
        return Seal(random_keys() if path is None else read_keys(path))

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The tools by name. Where the operations have changed to what can't be tools, they stay as they were."""
        self._refresh()
        return self._tools

    @property
    def imported(self) -> ImportedOffers | None:
        """The resources and prompts of imported servers; None where there is no such server. As the tools, they may change."""
        self._refresh()
        return self._imported

    def _refresh(self) -> None:
        if self._change_count != self._host.change_count:
            self._change_count = self._host.change_count
            try:
                self._tools = tools_of(self._host.catalogue.operations)
                self._imported = self._imported_now()
            except DeclarationError as exc:
                log.error("mcp.tools_unchanged", reason=str(exc))

    def _imported_now(self) -> ImportedOffers | None:
        specs = self._host.catalogue.operations
        if not any(isinstance(spec.options, Foreign) for spec in specs):
            return None
        from .imported import ImportedOffers  # late: few daemons import servers

        return ImportedOffers(specs)

    @property
    def tool_index(self) -> ToolIndex:
        """The index that finds tools by words."""
        if self._tool_index is None or self._tool_index.tools is not self.tools:
            from .tool_search import ToolIndex  # late: few services have so many tools

            self._tool_index = ToolIndex(self.tools)
        return self._tool_index


@final
class McpState:
    """`revision` is that of requests without a version of their own; None before `initialize`."""

    def __init__(self, connection: ClientConnection, offered: Offered) -> None:
        self.connection = connection
        self.host = connection.host
        self.dialect = McpDialect(self._refusal, self.host.memory)
        self.revision: str | None = None
        self.client = ClientInfo()
        self._offered = offered
        self.offers = offered.offers
        self.questions = offered.questions
        self._subject: str | None = None
        self._seal: Seal | None = None
        self._modern = False
        self._watches: dict[str, list[Callable[[], None]]] = {}
        """What ends the watching of each resource of an imported server, once for each subscription and listener."""
        if self.host.catalogue.changes:
            self.host.operation_watchers.append(self._tell_changes)
            self.dialect.on_close = lambda: self.host.operation_watchers.remove(self._tell_changes)
            self.dialect.on_subscribe, self.dialect.on_unsubscribe = self.watch, self.leave

    @property
    def tools(self) -> Mapping[str, Tool]:
        return self._offered.tools

    @property
    def tool_index(self) -> ToolIndex:
        return self._offered.tool_index

    @property
    def imported(self) -> ImportedOffers | None:
        return self._offered.imported

    @property
    def tasks(self) -> Mapping[str, TaskUse]:
        return self._offered.tasks

    @property
    def seal(self) -> Seal:
        if self._seal is None:
            self._seal = self._offered.seal if self._subject is None else self._offered.seal.of(self._subject)
        return self._seal

    def bind(self, subject: str) -> None:
        """From now on states of calls hold for this caller alone (2026-07-28, basic/patterns/mrtr)."""
        if subject != self._subject:
            self._subject, self._seal = subject, None

    @property
    def server(self) -> ServerInfo:
        return self.connection.host.server

    # -- eras --------------------------------------------------------------------------------------------------

    def protocol(self, meta: Meta | None) -> ProtocolRevision:
        return revision_of(meta, ProtocolRevision(self.revision or NEWEST_LEGACY))

    def agree(self, revision: str, client: ClientInfo) -> None:
        """From now on requests without a version of their own are of this revision.

        Raises `FailureError(Overloaded)` where there is no memory for what the client says of itself.
        """
        self.revision = self.dialect.revision = revision
        self._know(client)

    def _know(self, client: ClientInfo) -> None:
        self.client = client
        self.connection.set_client_info(client)

    def _refusal(self, method: str, meta: Meta | None) -> Failure | None:
        modern = meta is not None and meta.protocol_version is not None
        if not modern and self._modern and self.revision is None and method != "initialize":
            return MISSING_META
        refused = refusal(method, meta, self.revision or NEWEST_LEGACY)
        if refused is None and meta is not None and modern:
            self._meet_modern(meta)
        return refused

    def _meet_modern(self, meta: Meta) -> None:
        """Every modern request says who the client is; there is no handshake."""
        self._modern = True
        info = meta.client_info if isinstance(meta.client_info, dict) else {}
        name, version = info.get("name", ""), info.get("version", "")
        client = ClientInfo(
            name if isinstance(name, str) else "",
            version if isinstance(version, str) else "",
            meta.protocol_version,
            meta.client_capabilities,
        )
        if client != self.client:
            self._know(client)
        self.dialect.asks = self.revision is not None

    # -- what is offered ---------------------------------------------------------------------------------------

    def visible(self, ctx: Context) -> list[OperationSpec]:
        """Return the operations that this caller may call."""
        return list(self.host.catalogue.visible_to(ctx.identity))

    def visible_tools(self, ctx: Context) -> list[Tool]:
        """Return the tools that this caller may call, in the order of declaration."""
        names = (tool_name(spec.name) for spec in self.visible(ctx))
        return [tool for name in names if (tool := self.tools.get(name)) is not None]

    def check_access(self, spec: OperationSpec, ctx: Context) -> None:
        """Raises `FailureError` where this caller may not call it."""
        refused = self.host.access.for_caller(ctx.identity).refusal(spec.access, {})
        if refused is not None:
            raise FailureError(refused)

    def offered(self, kind: type[Resource] | type[Prompt] | UnionType) -> Iterator[tuple[OperationSpec, Any]]:
        """The resources or prompts of all callers. Any: an offer of this kind."""
        return ((spec, spec.offer) for spec in self.offers if isinstance(spec.offer, kind))

    def has(self, kind: type[Offer]) -> bool:
        if any(isinstance(spec.offer, kind) for spec in self.offers):
            return True
        imported = self.imported
        return imported is not None and bool(imported.has_resources if kind is Resource else imported.prompts)

    def shows_apps(self, protocol: ProtocolRevision) -> bool:
        """Whether the client shows pages of MCP Apps."""
        return shows_apps(protocol.capabilities if protocol.modern else self.client.capabilities)

    @property
    def has_apps(self) -> bool:
        """Whether pages of MCP Apps are offered."""
        return any(is_page(offer) for _, offer in self.offered(Resource)) or (
            self.imported is not None and self.imported.has_apps
        )

    # -- changes -----------------------------------------------------------------------------------------------

    def supported(self, wanted: SubscriptionFilter) -> SubscriptionFilter:
        """Return the part of `wanted` that can be served. Lists change by a reload, and with a server that is imported."""
        changes = self.host.settings.reload or self.imported is not None
        return SubscriptionFilter(
            tools_list_changed=(self.has_changing_tools and wanted.tools_list_changed) or None,
            resources_list_changed=(changes and self.has(Resource) and wanted.resources_list_changed) or None,
            prompts_list_changed=(changes and self.has(Prompt) and wanted.prompts_list_changed) or None,
            resource_subscriptions=wanted.resource_subscriptions if self.has(Resource) else None,
            task_ids=wanted.task_ids if self.tasks else None,
        )

    @property
    def has_changing_tools(self) -> bool:
        """Whether the list of tools may become another one."""
        return (self.host.settings.reload and bool(self.tools)) or self.host.catalogue.changes

    def _tell_changes(self) -> None:
        if self.revision is not None:
            self.announce_changes(self.supported(_ALL_LISTS), {})
        for request_id, listener in self.dialect.listeners.items():
            self.announce_changes(listener.wanted, {"_meta": {SUBSCRIPTION_ID: Raw(request_id)}})

    def announce_changes(self, wanted: SubscriptionFilter, members: dict[str, Any]) -> None:  # Any: JSON
        """These lists may have changed."""
        kinds = {
            "tools": wanted.tools_list_changed,
            "resources": wanted.resources_list_changed,
            "prompts": wanted.prompts_list_changed,
        }
        for kind in (kind for kind, is_wanted in kinds.items() if is_wanted):
            self.connection.tell(f"notifications/{kind}/list_changed", members)

    # -- resources of imported servers ---------------------------------------------------------------------------

    def watch(self, uri: str) -> None:
        """Have clients told of updates of a resource, if it is one of an imported server, until `leave`."""
        found = None if self.imported is None else self.imported.reader(uri)
        if found is None:
            return
        reader, own = found
        host = self.host
        server = foreign_server(reader.options)
        server.watched.watch(own, lambda updated: host.resource_updated(server.uri(updated)))
        self._watches.setdefault(uri, []).append(partial(server.watched.leave, own))
        host.spawn(partial(self._open, server.namespace))

    async def check_watched(self, uri: str) -> None:
        """Raises `FailureError` where the imported server of a resource is connected and refuses to tell of its updates."""
        found = None if self.imported is None or uri not in self._watches else self.imported.reader(uri)
        if found is None:
            return
        error = await foreign_server(found[0].options).watched.refusal(found[1])
        if error is not None:
            message = "The server does not tell of updates of the resource"
            raise FailureError(DomainFailure(SERVER_ERROR, message, details=Raw(error), http_status=502))

    async def _open(self, namespace: str) -> None:
        """Start what keeps the server running: it begins with the first call."""
        try:
            await self.host.enter_late(namespace)
        except Exception as exc:  # noqa: BLE001 - a lifespan may raise anything; the next call says what is wrong
            log.warning("import.unavailable", import_=namespace, reason=type(exc).__name__)

    def leave(self, uri: str) -> None:
        """One watches it no more."""
        if leaving := self._watches.get(uri):
            leaving.pop()()
            if not leaving:
                del self._watches[uri]

    def save(self) -> bytes:
        return msgspec.json.encode(
            Saved(
                self.revision,
                self.client,
                self.dialect.log_level,
                [*self.dialect.uris],
                [*self.seal.keys],
                {request_id.decode(): wanted for request_id, wanted in self.dialect.left.items()},
            )
        )

    def restore(self, saved: bytes) -> None:
        last = decoder_for(Saved)(saved)
        self.dialect.log_level = last.log_level
        if not self._offered.shares_keys:
            from .seal import Seal  # late, as above

            self._seal = Seal(last.seal)
        self.dialect.take_over(last.subscribed, last.listeners, last.client)
        if last.revision is not None:
            self.agree(last.revision, last.client)
            self.announce_changes(self.supported(_ALL_LISTS), {})
        else:
            self._know(last.client)


_ALL_LISTS: Final = SubscriptionFilter(tools_list_changed=True, resources_list_changed=True, prompts_list_changed=True)


def _check_offers(specs: Iterable[OperationSpec]) -> None:
    """Raises `DeclarationError` for two resources of one URI, two prompts of one name, and options that MCP does not know."""
    seen: dict[tuple[str, str], str] = {}
    for spec in specs:
        if isinstance(spec.offer, Resource | Prompt):
            from .options import (
                PromptOptions,
                ResourceOptions,
                check_page,
                options_of,
            )  # late: few services have offers

            if isinstance(spec.offer, Resource):
                check_page(spec, spec.offer, options_of(spec, ResourceOptions))
            else:
                options_of(spec, PromptOptions)
            what = (
                ("resource", spec.offer.uri) if isinstance(spec.offer, Resource) else ("prompt", tool_name(spec.name))
            )
            if what in seen:
                raise DeclarationError(f"operations {seen[what]} and {spec.name} are both the {what[0]} {what[1]}")
            seen[what] = spec.name


def _check_links(tools: Iterable[Tool], offers: Iterable[OperationSpec]) -> None:
    """Raises `DeclarationError` for a tool whose page is not hosted here."""
    pages = [spec.offer.uri for spec in offers if isinstance(spec.offer, Resource) and is_page(spec.offer)]
    for tool in tools:
        if isinstance(tool.spec.options, Foreign):
            continue  # its server answers for it
        if tool.ui is not None and tool.ui.resource_uri is not None:
            from .options import check_link  # late: few tools have a page

            check_link(tool.spec, tool.ui.resource_uri, pages)


def is_page(offer: Resource) -> bool:
    """Whether a resource is a page of MCP Apps."""
    return offer.uri.startswith(APP_SCHEME)


def _check_numbers(specs: Iterable[OperationSpec]) -> None:
    for spec in specs:
        for error in spec.errors:
            if error.definition.number in RESERVED_NUMBERS:
                raise DeclarationError(
                    f"operation {spec.name}: {error.__name__} has number={error.definition.number}, but MCP keeps"
                    f" {RESERVED_NUMBERS[0]} to {RESERVED_NUMBERS[-1]} for itself; choose another one"
                )
