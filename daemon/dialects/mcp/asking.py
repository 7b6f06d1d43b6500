"""Asks the user before a tool runs: legacy clients by `elicitation/create`, modern ones by `input_required`."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from ....errors.exceptions import FailureError
from ....errors.failures import DomainFailure, InvalidParams
from ....errors.type_building import DECODE_ERRORS, decoder_for
from ...operations.context import ClientRefused, Context
from ...operations.service import Service
from ...operations.spec import Forward, Timeout
from .era import Era, missing_capability
from .forms import STATE_SECONDS, Answer, forms_of, value_of
from .results import modern_members
from .state import McpState
from .tools import Tool

GIVE: Final = "$give"
ELICIT: Final = "$elicit"
"""Methods that only forward calls reach."""


class Elicit(msgspec.Struct, frozen=True):
    """A call of a tool that waits for the user. `token` asks for progress."""

    tool: str
    arguments: dict[str, Raw]
    token: str | int | None


def add_asking(service: Service, state: McpState) -> None:
    """Add what asks to a service."""

    @service.query(GIVE, inline=True)
    def give(params: Raw, /) -> Raw:
        """Answer with the params."""
        return params

    @service.mutation(ELICIT, timeout=None)
    async def elicit(ctx: Context, params: Elicit, /) -> Raw:
        """Ask the user, then run the tool."""
        tool = state.tools[params.tool]
        refusal = state.host.access.refusal(tool.spec.access, ctx.service_params)
        if refusal is not None:
            raise FailureError(refusal)
        if "elicitation" not in ctx.client.capabilities:
            raise FailureError(_CANNOT_ASK)
        given: dict[str, Any] = dict(params.arguments)
        for name, form in forms_of(tool.spec).items():
            try:
                answer = await ctx.request("elicitation/create", form, type=Answer, timeout=STATE_SECONDS)
            except (ClientRefused, TimeoutError, msgspec.DecodeError):
                raise FailureError(_NO_ANSWER) from None
            given[name] = value_of(tool.spec, name, answer)
        text = msgspec.json.encode(given)
        timeout: Timeout = None if tool.spec.timeout is msgspec.UNSET else tool.spec.timeout
        outcome = await state.host.inner_calls.run(
            replace(tool.spec, timeout=timeout),
            text,
            tool.spec.input.decode(text, "arguments"),
            metadata=ctx.service_params,
            sink=None,
            context_host=state.surface.context_host,
            progress_token=params.token,
        )
        if isinstance(outcome, bytes):
            return Raw(outcome)
        raise FailureError(outcome)

    service.operations[-1] = replace(service.operations[-1], only_waits=True)


_NO_ANSWER: Final = DomainFailure("NO_ANSWER", "The client did not bring an answer of the user's", http_status=504)
_CANNOT_ASK: Final = DomainFailure(
    "CLIENT_CANNOT_ASK", "The tool has to ask the user, which this client can't", http_status=400
)


def _is_faulty(tool: Tool, arguments: Raw, asked: Collection[str]) -> bool:
    """Whether the first fault in the arguments is one that no answer of the user's can mend."""
    try:
        tool.spec.input.decode(arguments, "arguments")
    except FailureError as exc:
        return isinstance(exc.failure, InvalidParams) and exc.failure.param.split(".")[1:2] not in [[n] for n in asked]
    return False


def asking(
    state: McpState, tool: Tool, arguments: Raw, era: Era, responses: dict[str, Answer], sealed: str | None
) -> Forward | Raw:
    """Where the call of a tool goes that has to ask: a forward, or its arguments with all answers in them.

    Raises `FailureError` for arguments that only the user may give, and for a state that is not ours.
    """
    forms = forms_of(tool.spec)
    try:
        given = decoder_for(dict[str, Raw])(arguments)
    except DECODE_ERRORS:
        return arguments  # the operation's input says what is wrong
    for name in forms:
        if name in given:
            raise FailureError(InvalidParams(f"arguments.{name}", "no value: the user is asked for it", "a value"))
    if _is_faulty(tool, arguments, forms):
        return arguments  # the user is not asked in vain
    if not era.modern:
        params = msgspec.json.encode(Elicit(tool.name, given, era.token))
        return Forward(ELICIT, Raw(params), None, prefix="arguments", progress_token=era.token)
    values = {} if sealed is None else state.seal.open(sealed, tool.name, arguments)
    if sealed is not None:
        answered = {name: value_of(tool.spec, name, responses[name]) for name in forms if name in responses}
        values |= {name: value for name, value in answered.items() if value is not None}
    missing = {name: form for name, form in forms.items() if name not in values}
    if not missing:
        return Raw(msgspec.json.encode({**given, **values}))
    if "elicitation" not in era.capabilities:
        raise FailureError(missing_capability("elicitation"))
    result = {
        "inputRequests": {name: {"method": "elicitation/create", "params": form} for name, form in missing.items()},
        "requestState": state.seal.close(tool.name, arguments, values),
    }
    members = modern_members(result, state.server, result_type="input_required")
    return Forward(GIVE, Raw(msgspec.json.encode(members)), None)
