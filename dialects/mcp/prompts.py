"""`prompts/…`, and `completion/complete` for the arguments of prompts and the variables of resources."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, get_args, get_origin

import msgspec
from msgspec import Raw

from ...daemon.declarations import Prompt, Resource, arguments_of
from ...daemon.operations.context import Context
from ...daemon.operations.service import Service
from ...daemon.operations.spec import OperationSpec
from ...errors.decoders import convert, decoder_for
from ...errors.exceptions import FailureError
from ...errors.failures import InvalidParams
from ...errors.redaction import scrub_known
from ...schemas.documents import input_schema
from .asking import AskingParams, forward
from .generated import structs
from .options import PromptOptions, options_of
from .results import encode_result
from .revision import TTL_MS, Params, unknown
from .state import McpState
from .tool_calls import ListParams
from .tool_schemas import asked_params, inlined, json_params, tool_input
from .tools import page, tool_name

MAX_VALUES: Final = 100
"""Completions in one answer (completion, `CompleteResult`)."""


class GetParams(AskingParams, frozen=True, kw_only=True):
    name: str
    arguments: dict[str, str] | None = None


class CompleteParams(Params, frozen=True, kw_only=True):
    ref: structs.PromptReference | structs.ResourceTemplateReference
    argument: structs.CompleteRequestParamsArgument


def add_prompts(service: Service, state: McpState) -> None:
    """Add the methods to a service."""

    @service.query("prompts/list", inline=True)
    def list_prompts(ctx: Context, params: ListParams, /) -> Raw:
        """List the prompts that the caller may get."""
        visible = {spec.name for spec in state.visible(ctx)}
        found = [_described(spec, offer) for spec, offer in state.offered(Prompt) if spec.name in visible]
        shown, following = page(found, params.cursor)
        result = structs.ListPromptsResult(prompts=shown, next_cursor=following)
        return state.write(result, params.meta, ttl_ms=TTL_MS)

    @service.query("prompts/get", inline=True)
    def get_prompt(params: GetParams, /) -> Any:  # Any: a forward
        """Get a prompt."""
        spec = _find(state, Prompt, params.name, "name")
        protocol = state.protocol(params.meta)
        given = arguments_of(params.arguments or {}, json_params(spec))

        def write(result: bytes) -> bytes:
            return bytes(encode_result(_prompt(spec, result), protocol, state.server))

        return forward(state, spec.name, Raw(msgspec.json.encode(given)), "arguments", params, protocol, write)

    @service.query("completion/complete", inline=True)
    def complete(ctx: Context, params: CompleteParams, /) -> Raw:
        """Complete the value of an argument or a variable."""
        match params.ref:
            case structs.PromptReference(name=name):
                spec = _find(state, Prompt, name, "ref.name")
            case structs.ResourceTemplateReference(uri=uri):
                spec = _find(state, Resource, uri, "ref.uri")
        state.check_access(spec, ctx)
        if params.argument.name not in {*spec.input.names} - asked_params(spec):
            raise FailureError(InvalidParams("argument.name", "the name of an argument", "another value"))
        values = _completed(spec, params.argument.name, params.argument.value)
        completion = structs.CompleteResultCompletion(
            values=list(values[:MAX_VALUES]), total=len(values), has_more=len(values) > MAX_VALUES
        )
        return state.write(structs.CompleteResult(completion=completion), params.meta)


def _described(spec: OperationSpec, offer: Prompt) -> structs.Prompt:
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


def _find(state: McpState, kind: type[Prompt] | type[Resource], name: str, param: str) -> OperationSpec:
    """The prompt of this name, or the resource of this URI or template."""
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
    part = inlined(input_schema(spec.input)).get("properties", {}).get(name, {})
    choices = [text for text in part.get("enum", ()) if isinstance(text, str)]
    return [text for text in choices if text.casefold().startswith(begun.casefold())]


def _prompt(spec: OperationSpec, result: bytes) -> structs.GetPromptResult:
    """The prompt whose operation returned this."""
    returns: Any = spec.returns
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
