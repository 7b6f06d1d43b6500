"""Answers the methods of resources and prompts: lists, reads, completes arguments, and tells of changes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias, get_args, get_origin

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from ...daemon.declarations import ExternalNames, Prompt, Resource, foreign_server, variables_of
from ...daemon.operations.context import Context, context_backend_of
from ...daemon.operations.registry import ServerInfo
from ...daemon.operations.service import Service
from ...daemon.operations.spec import OperationSpec
from ...errors.decoders import DECODE_ERRORS, ExternalSchema, convert, decoder_for
from ...errors.exceptions import FailureError
from ...errors.failures import Cancelled, InvalidParams, Overloaded
from ...errors.redaction import scrub_known
from ...lazy import anyio
from ...schemas.documents import input_schema
from .asking import AskingParams, forward
from .dialect import MAX_SUBSCRIBED, SUBSCRIPTION_ID, Listener, SubscriptionFilter
from .generated import structs
from .imported import (
    Completer,
    ImportedOffers,
    ListedResource,
    asked_completion,
    got_prompt,
    listed_prompt,
    listed_resource,
    listed_template,
    read_contents,
)
from .options import PromptOptions, ResourceOptions, meta_of_ui, mime_type_of, options_of
from .revision import RESOURCE_NOT_FOUND, TTL_MS, Params, ProtocolRevision, modern_members, own_error, unknown
from .state import EMPTY, McpState
from .tool_calls import ListParams
from .tool_results import encode_result, write
from .tool_schemas import asked_params, inlined, json_params, tool_input
from .tools import tool_name, written_page

if TYPE_CHECKING:
    from .tasks import Tasks

_CONTENTS: Final = (structs.TextResourceContents, structs.BlobResourceContents)
JSON_TYPE: Final = "application/json"
_Item: TypeAlias = tuple[OperationSpec, Resource] | ListedResource
MAX_LISTENING: Final = 1024
"""Requests that may listen at a time."""


class UriParams(Params, frozen=True, kw_only=True):
    uri: str


class ReadParams(AskingParams, frozen=True, kw_only=True):
    uri: str


class ListenParams(Params, frozen=True, kw_only=True):
    notifications: SubscriptionFilter


def add_resources(service: Service, state: McpState) -> None:
    """Add the methods to a service."""

    def shown(ctx: Context, *, templates: bool) -> list[tuple[OperationSpec, Resource]]:
        visible = {spec.name for spec in state.visible(ctx)}
        return [
            (spec, offer)
            for spec, offer in state.offered(Resource)
            if spec.name in visible and offer.is_template == templates
        ]

    def imported(
        ctx: Context, listed: Callable[[ImportedOffers, Collection[str]], list[ListedResource]]
    ) -> list[ListedResource]:
        offers = state.imported
        return [] if offers is None else listed(offers, {spec.name for spec in state.visible(ctx)})

    @service.query("resources/list", inline=True)
    def list_resources(ctx: Context, params: ListParams, /) -> Raw:
        """List the resources that the caller may read."""
        items: list[_Item] = [*shown(ctx, templates=False), *imported(ctx, ImportedOffers.resources)]
        resources, following = written_page(items, params.cursor, _listed_resource)
        result = structs.ListResourcesResult(resources=resources, next_cursor=following)
        return write(state, result, params.meta, ttl_ms=TTL_MS)

    @service.query("resources/templates/list", inline=True)
    def list_templates(ctx: Context, params: ListParams, /) -> Raw:
        """List the templates of resources that the caller may read."""
        items: list[_Item] = [*shown(ctx, templates=True), *imported(ctx, ImportedOffers.templates)]
        templates, following = written_page(items, params.cursor, _listed_template)
        result = structs.ListResourceTemplatesResult(resource_templates=templates, next_cursor=following)
        return write(state, result, params.meta, ttl_ms=TTL_MS)

    @service.query("resources/read", inline=True)
    def read_resource(params: ReadParams, /) -> Any:  # Any: a forward
        """Read a resource."""
        protocol = state.protocol(params.meta)
        found = None if state.imported is None or _match(state, params.uri) else state.imported.reader(params.uri)
        if found is not None:
            reader, own = found
            server = foreign_server(reader.options)

            def write_read(result: bytes) -> bytes:
                return _written(
                    read_contents(result, server), structs.ReadResourceResult, protocol, state.server, ttl_ms=0
                )

            return forward(state, reader.name, Raw(msgspec.json.encode({"uri": own})), "", params, protocol, write_read)
        spec, offer, values = _find(state, params.uri, protocol)
        given = arguments_of(values, json_params(spec))

        def write_contents(result: bytes) -> bytes:
            contents = structs.ReadResourceResult(contents=[*_contents(params.uri, spec, offer, result)])
            return bytes(encode_result(contents, protocol, state.server, ttl_ms=0))

        return forward(state, spec.name, Raw(msgspec.json.encode(given)), "uri", params, protocol, write_contents)

    @service.mutation("resources/subscribe")
    async def subscribe(ctx: Context, params: UriParams, /) -> Raw:
        """Hear of the changes of a resource."""
        spec = _reader(state, params.uri) or _find(state, params.uri, state.protocol(params.meta))[0]
        state.check_access(spec, ctx)
        with state.dialect.subscribing(params.uri):
            await state.check_watched(params.uri)
        return EMPTY

    @service.mutation("resources/unsubscribe", inline=True)
    def unsubscribe(params: UriParams, /) -> Raw:
        """Hear no more of them."""
        state.dialect.unsubscribe(params.uri)
        return EMPTY


def add_subscriptions(service: Service, state: McpState) -> None:
    """Add `subscriptions/listen` to a service: how modern clients hear of changes."""
    dialect = state.dialect

    @service.query("subscriptions/listen", timeout=None, limit=MAX_LISTENING)
    async def listen(ctx: Context, params: ListenParams, /) -> Raw:
        """Hear of changes until the request is cancelled, or the daemon ends."""
        own_id = (ctx.request_id or "null").encode()
        is_left = dialect.left.pop(own_id, None) is not None
        if not is_left:  # else the program before this one has checked it
            _check_uris(params.notifications.resource_subscriptions or [], state, ctx)
            if len(params.notifications.task_ids or ()) > MAX_SUBSCRIBED:
                raise FailureError(Overloaded())
        wanted = state.supported(params.notifications)
        meta = {SUBSCRIPTION_ID: Raw(own_id)}
        ended = anyio.Event()
        tasks: Tasks | None = None
        if wanted.task_ids is not None:
            from .tasks import Tasks  # late: few clients listen to tasks

            tasks = Tasks(state)
            wanted = replace(wanted, task_ids=await tasks.known(ctx, params.meta, wanted.task_ids))
        dialect.listeners[own_id] = Listener(wanted, ended.set)
        for uri in wanted.resource_subscriptions or ():
            state.watch(uri)
        try:
            if is_left:
                state.announce_changes(wanted, {"_meta": meta})
            else:
                await ctx.notify("notifications/subscriptions/acknowledged", {"_meta": meta, "notifications": wanted})
            async with anyio.create_task_group() as watching:
                if tasks is not None:
                    for task_id in wanted.task_ids or ():
                        watching.start_soon(tasks.watch, ctx, task_id, meta)
                await ended.wait()
                watching.cancel_scope.cancel()
        finally:
            del dialect.listeners[own_id]
            for uri in wanted.resource_subscriptions or ():
                state.leave(uri)
        if own_id in dialect.left:  # the next program goes on with it
            raise FailureError(Cancelled())
        return Raw(msgspec.json.encode(modern_members({"_meta": meta}, state.server)))

    service.operations[-1] = replace(service.operations[-1], only_waits=True)


def _check_uris(uris: list[str], state: McpState, ctx: Context) -> None:
    """Raises `FailureError` for too many, and for a resource that this caller may not read. One that is not there may come."""
    if len(uris) > MAX_SUBSCRIBED:
        raise FailureError(Overloaded())
    for uri in () if state.host.access.unrestricted else uris:
        spec = _reader(state, uri)
        if spec is not None:
            state.check_access(spec, ctx)


def _reader(state: McpState, uri: str) -> OperationSpec | None:
    """The operation that reads a resource, also one of an imported server; None where there is no such resource."""
    own = _match(state, uri)
    if own is not None:
        return own[0]
    found = None if state.imported is None else state.imported.reader(uri)
    return None if found is None else found[0]


def _listed_resource(item: _Item) -> structs.Resource | None:
    if isinstance(item, ListedResource):
        return listed_resource(item)
    spec, offer = item
    return structs.Resource(uri=offer.uri, **_described(spec, offer))


def _listed_template(item: _Item) -> structs.ResourceTemplate | None:
    if isinstance(item, ListedResource):
        return listed_template(item)
    spec, offer = item
    return structs.ResourceTemplate(uri_template=offer.uri, **_described(spec, offer))


def _described(spec: OperationSpec, offer: Resource) -> dict[str, Any]:  # Any: members of a struct
    options = options_of(spec, ResourceOptions)
    return {
        "annotations": options.annotations,
        "icons": options.icons,
        "meta": {**(options.meta or {}), **meta_of_ui(options.ui)} or None,
        "name": spec.name,
        "title": offer.title or None,
        "description": scrub_known(spec.description) or None,
        "mime_type": mime_type_of(offer),
    }


def _find(state: McpState, uri: str, protocol: ProtocolRevision) -> tuple[OperationSpec, Resource, dict[str, str]]:
    """The resource of this URI, and the values of its variables. Raises `FailureError` where there is none."""
    found = _match(state, uri)
    if found is not None:
        return found
    if protocol.modern:
        raise unknown("resource", uri, param="uri", expected="the URI of a resource")
    raise FailureError(own_error(RESOURCE_NOT_FOUND, "Resource not found", {"uri": uri}))


def _match(state: McpState, uri: str) -> tuple[OperationSpec, Resource, dict[str, str]] | None:
    for spec, offer in state.offered(Resource):
        if offer.uri == uri and not offer.is_template:
            return spec, offer, {}
    for spec, offer in state.offered(Resource):
        values = variables_of(offer.uri, uri) if offer.is_template else None
        if values is not None:
            return spec, offer, values
    return None


def _contents(
    uri: str, spec: OperationSpec, offer: Resource, result: bytes
) -> Sequence[structs.TextResourceContents | structs.BlobResourceContents]:
    returns: Any = spec.returns
    mime_type = mime_type_of(offer)
    meta = meta_of_ui(options_of(spec, ResourceOptions).ui) or None  # hosts go by that of the contents
    if isinstance(returns, ExternalSchema):
        if result[:1] in (b"{", b"[") and (mounted := _mounted_contents(spec, result)) is not None:
            return mounted
        if returns.load().get("contentEncoding") == "base64":
            return [structs.BlobResourceContents(uri=uri, mime_type=mime_type, blob=_text(result))]
    if get_origin(returns) is list and _are_contents(*get_args(returns)):
        contents: list[Any] = decoder_for(returns)(result)
        return contents
    if _are_contents(returns):
        return [decoder_for(returns)(result)]
    if returns in (bytes, bytearray, memoryview):
        return [structs.BlobResourceContents(meta=meta, uri=uri, mime_type=mime_type, blob=_text(result))]
    if result.startswith(b'"'):
        return [structs.TextResourceContents(meta=meta, uri=uri, mime_type=mime_type, text=_text(result))]
    return [structs.TextResourceContents(uri=uri, mime_type=mime_type or JSON_TYPE, text=result.decode())]


def _mounted_contents(
    spec: OperationSpec, result: bytes
) -> list[structs.TextResourceContents | structs.BlobResourceContents] | None:
    """The contents that a mounted daemon has made itself, with URIs as clients know them; None for any other result."""
    text = b"[%b]" % result if result.startswith(b"{") else result
    try:
        members = read_contents(b'{"contents":%b}' % text, ExternalNames(spec.namespace))
        return [convert(each, _CONTENTS["blob" in each]) for each in members["contents"]]
    except (*DECODE_ERRORS, TypeError):  # the latter for a list of numbers
        return None


def _mounted_prompt(spec: OperationSpec, result: bytes) -> structs.GetPromptResult | None:
    """The messages that a mounted daemon has made itself; None for any other result."""
    text = b'{"messages":[%b]}' % result if result.startswith(b'{"role"') else result
    text = b'{"messages":%b}' % text if text.startswith(b"[") else text
    try:
        found: structs.GetPromptResult = convert(
            got_prompt(text, ExternalNames(spec.namespace)), structs.GetPromptResult
        )
        return found
    except (*DECODE_ERRORS, AttributeError):  # the latter for a text or a number
        return None


def _are_contents(*annotations: Any) -> bool:
    members = [member for annotation in annotations for member in get_args(annotation) or (annotation,)]
    return all(member in _CONTENTS for member in members)


_text: Final = msgspec.json.Decoder(str).decode


# Prompts, and completions for them and for the variables of resources.


MAX_VALUES: Final = 100
"""Completions in one answer (completion, `CompleteResult`)."""


class GetParams(AskingParams, frozen=True, kw_only=True):
    name: str
    arguments: dict[str, str] | None = None


class CompleteParams(Params, frozen=True, kw_only=True):
    ref: structs.PromptReference | structs.ResourceTemplateReference
    argument: structs.CompleteRequestParamsArgument
    context: Raw | None = None


def add_prompts(service: Service, state: McpState) -> None:
    """Add the methods to a service."""

    @service.query("prompts/list", inline=True)
    def list_prompts(ctx: Context, params: ListParams, /) -> Raw:
        """List the prompts that the caller may get."""
        visible = {spec.name for spec in state.visible(ctx)}
        found = [
            *((tool_name(spec.name), spec) for spec, _ in state.offered(Prompt) if spec.name in visible),
            *(each for each in (state.imported.prompts if state.imported else {}).items() if each[1].name in visible),
        ]
        shown, following = written_page(found, params.cursor, _listed_prompt)
        result = structs.ListPromptsResult(prompts=shown, next_cursor=following)
        return write(state, result, params.meta, ttl_ms=TTL_MS)

    @service.query("prompts/get", inline=True)
    def get_prompt(params: GetParams, /) -> Any:  # Any: a forward
        """Get a prompt."""
        protocol = state.protocol(params.meta)
        own = _imported_prompt(state, params.name)
        if own is not None:
            server = foreign_server(own.options)

            def write_got(result: bytes) -> bytes:
                return _written(got_prompt(result, server), structs.GetPromptResult, protocol, state.server)

            arguments = Raw(msgspec.json.encode(params.arguments or {}))
            return forward(state, own.name, arguments, "arguments", params, protocol, write_got)
        spec = _named(state, Prompt, params.name, "name")
        given = arguments_of(params.arguments or {}, json_params(spec))

        def write_prompt(result: bytes) -> bytes:
            return bytes(encode_result(_prompt(spec, result), protocol, state.server))

        return forward(state, spec.name, Raw(msgspec.json.encode(given)), "arguments", params, protocol, write_prompt)

    @service.query("completion/complete")
    async def complete(ctx: Context, params: CompleteParams, /) -> Raw:
        """Complete the value of an argument or a variable."""
        asked = None
        if state.imported is not None and not _is_own(state, params.ref):
            asked = state.imported.completer(params.ref)
        if asked is not None:
            state.check_access(asked.reads, ctx)
            return await _completed_there(state, ctx, asked, params)
        match params.ref:
            case structs.PromptReference(name=name):
                spec = _named(state, Prompt, name, "ref.name")
            case structs.ResourceTemplateReference(uri=uri):
                spec = _named(state, Resource, uri, "ref.uri")
        state.check_access(spec, ctx)
        if params.argument.name not in _properties(spec).keys() - asked_params(spec):
            raise FailureError(InvalidParams("argument.name", "the name of an argument", "another value"))
        values = _completed(spec, params.argument.name, params.argument.value)
        completion = structs.CompleteResultCompletion(
            values=list(values[:MAX_VALUES]), total=len(values), has_more=len(values) > MAX_VALUES
        )
        return write(state, structs.CompleteResult(completion=completion), params.meta)


def _is_own(state: McpState, ref: structs.PromptReference | structs.ResourceTemplateReference) -> bool:
    if isinstance(ref, structs.PromptReference):
        return any(tool_name(spec.name) == ref.name for spec, _ in state.offered(Prompt))
    return any(offer.uri == ref.uri for _, offer in state.offered(Resource))


def _imported_prompt(state: McpState, name: str) -> OperationSpec | None:
    if state.imported is None or any(tool_name(spec.name) == name for spec, _ in state.offered(Prompt)):
        return None
    return state.imported.prompts.get(name)


async def _completed_there(state: McpState, ctx: Context, asked: Completer, params: CompleteParams) -> Raw:
    """Have the server of an imported prompt or template complete a value. Raises `FailureError` as its operation does."""
    protocol = state.protocol(params.meta)
    if asked.spec is None:
        return encode_result(structs.CompleteResult(completion=_NONE), protocol, state.server)
    text = asked_completion(asked.ref, params.argument.name, params.argument.value, params.context)
    outcome = await state.host.inner_calls.run(
        asked.spec,
        bytes(text),
        asked.spec.input.decode(text, ""),
        metadata=ctx.service_params,
        sink=None,
        context_backend=context_backend_of(ctx),
    )
    if isinstance(outcome, bytes):
        members = msgspec.json.decode(outcome)
        return Raw(_written(members, structs.CompleteResult, protocol, state.server))
    raise FailureError(outcome)


def _written(
    members: dict[str, Any],  # Any: JSON
    kind: type[Struct],
    protocol: ProtocolRevision,
    info: ServerInfo,
    *,
    ttl_ms: int | None = None,
) -> bytes:
    """A result of another server in the revision of its request. What is not as MCP has it goes out as the server wrote it."""
    try:
        return bytes(encode_result(convert(members, kind), protocol, info, ttl_ms=ttl_ms))
    except DECODE_ERRORS:
        return msgspec.json.encode(modern_members(members, info, ttl_ms=ttl_ms) if protocol.modern else members)


_NONE: Final = structs.CompleteResultCompletion(values=[], total=0, has_more=False)


def _listed_prompt(item: tuple[str, OperationSpec]) -> structs.Prompt | None:
    name, spec = item
    return _described_prompt(spec, spec.offer) if isinstance(spec.offer, Prompt) else listed_prompt(name, spec)


def _described_prompt(spec: OperationSpec, offer: Prompt) -> structs.Prompt:
    schema = tool_input(spec)
    required = schema.get("required", ())
    options = options_of(spec, PromptOptions)
    return structs.Prompt(
        icons=options.icons,
        meta=options.meta,
        name=tool_name(spec.name),
        title=offer.title or None,
        description=scrub_known(spec.description) or None,
        arguments=[
            structs.PromptArgument(name=name, description=part.get("description"), required=name in required)
            for name, part in schema.get("properties", {}).items()
        ]
        or None,
    )


def _named(state: McpState, kind: type[Prompt] | type[Resource], name: str, param: str) -> OperationSpec:
    for spec, offer in state.offered(kind):
        if name == (offer.uri if isinstance(offer, Resource) else tool_name(spec.name)):
            return spec
    if kind is Prompt:
        raise unknown("prompt", name, param=param)
    raise unknown("resource", name, param=param, expected="the URI of a resource")


def _completed(spec: OperationSpec, name: str, begun: str) -> Sequence[str]:
    completer = spec.offer.complete.get(name) if isinstance(spec.offer, Resource | Prompt) else None
    if completer is not None:
        found: list[str] = convert([*completer(begun)], list[str])
        return found
    part = _properties(spec).get(name, {})
    choices = [text for text in part.get("enum", ()) if isinstance(text, str)]
    return [text for text in choices if text.casefold().startswith(begun.casefold())]


def _properties(spec: OperationSpec) -> dict[str, Any]:  # Any: JSON Schema
    properties: dict[str, Any] = inlined(input_schema(spec.input)).get("properties", {})
    return properties


def _prompt(spec: OperationSpec, result: bytes) -> structs.GetPromptResult:
    returns: Any = spec.returns
    if isinstance(returns, ExternalSchema) and (mounted := _mounted_prompt(spec, result)) is not None:
        return replace(mounted, description=mounted.description or scrub_known(spec.description) or None)
    if returns is structs.GetPromptResult:
        own: structs.GetPromptResult = decoder_for(returns)(result)
        return own
    if get_origin(returns) is list and get_args(returns) == (structs.PromptMessage,):
        messages: list[structs.PromptMessage] = decoder_for(returns)(result)
    elif returns is structs.PromptMessage:
        messages = [decoder_for(structs.PromptMessage)(result)]
    else:
        text = msgspec.json.decode(result) if result.startswith(b'"') else result.decode()
        messages = [structs.PromptMessage(role="user", content=structs.TextContent(text=text))]
    return structs.GetPromptResult(description=scrub_known(spec.description) or None, messages=messages)


def arguments_of(values: Mapping[str, str], not_texts: Collection[str]) -> dict[str, Any]:  # Any: JSON
    """Params of texts: as they are, but those that can't be texts as the JSON that they hold, if they hold any."""
    read: dict[str, Any] = {}
    for name, text in values.items():
        read[name] = text
        if name in not_texts:
            try:
                read[name] = msgspec.json.decode(text)
            except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
                pass  # the param's own type says what is wrong
    return read
