"""Calls of operations that ask before they run: legacy clients by requests, modern ones by results `input_required`."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from typing import Any, Final, final

import msgspec
from msgspec import UNSET, Raw
from msgspec.structs import replace

from ...daemon.operations.context import ClientRefused, Context, context_backend_of
from ...daemon.operations.service import Service
from ...daemon.operations.spec import Forward, Timeout
from ...errors.exceptions import FailureError
from ...errors.failures import DomainFailure, Failure
from .dialect import Outcome, Rendering
from .questions import ClientRequest, Questions, UnusableAnswer
from .revision import Params, ProtocolRevision, missing_capability, modern_members, wants_task
from .seal import STATE_SECONDS, State
from .state import ANSWER, ASK, TASK, McpState
from .tools import tool_name

MAX_ASKING: Final = 1024
"""Calls of one operation that may wait for answers at a time."""


class AskingParams(Params, frozen=True, kw_only=True):
    """The params of every method whose result may be `input_required`."""

    responses: dict[str, Raw] | None = msgspec.field(name="inputResponses", default=None)
    state: str | None = msgspec.field(name="requestState", default=None)


class Pending(msgspec.Struct, frozen=True):
    """A call that is to be asked for. `where` is how the caller names its arguments."""

    arguments: Raw
    where: str
    protocol: ProtocolRevision
    state: State
    responses: dict[str, Raw]
    is_task: bool = False


def forward(
    state: McpState,
    operation: str,
    arguments: Raw,
    where: str,
    params: AskingParams,
    protocol: ProtocolRevision,
    write: Callable[[bytes], bytes],
    tell: Callable[[Failure], bytes | None] | None = None,
) -> Forward:
    """Where a call goes: to its operation, to what asks for params of it before, or to what begins a task. `write` and `tell` are
    those of `Rendering`.

    Raises `FailureError` for arguments that only the user may give, and for a state that is not ours.
    """
    questions = state.questions.get(operation)
    is_task = operation in state.tasks and wants_task(state.tasks[operation], protocol)
    method, asks = (TASK + operation if is_task else operation), is_task
    if questions is not None:
        given = questions.check_arguments(arguments, where)
        earlier = State()
        if protocol.modern and params.state is not None:
            earlier = state.seal.open_state(params.state, operation, arguments)
        pending = Pending(arguments, where, protocol, earlier, params.responses or {}, is_task)
        try:
            values = answers_of(questions, pending)
        except Exception:  # noqa: BLE001 - reading may run the app's own `__post_init__`; then the operation tells what is wrong
            values = None
        if values is not None and len(values) == len(questions.params):
            arguments = Raw(msgspec.json.encode({**given, **values}))
        else:
            method, asks = (ANSWER if protocol.modern else ASK) + operation, True
            arguments, where = Raw(msgspec.json.encode(pending)), ""
    if protocol.token is not None:
        state.dialect.begin_progress(protocol.token)
    return Forward(
        method,
        arguments,
        None,
        prefix=where,
        rendering=Rendering(state.dialect, protocol, write, tell, asks=asks),
        progress_token=protocol.token,
        patient=True,
        name=tool_name(operation),
        logged=operation,
    )


def answers_of(questions: Questions, pending: Pending) -> dict[str, Any]:
    """The answers so far, as JSON values: what was not asked for, and what does not fit, is no answer.

    What fitted may fit no more after a reload. Raises `FailureError` where the user declined.
    """
    values = {name: value for name, value in pending.state.values.items() if questions.accepts(name, value)}
    for name in pending.state.asked:
        if name in pending.responses and name in questions.params:
            try:
                values[name] = questions.params[name].read(pending.responses[name])
            except UnusableAnswer:
                pass
    return values


def add_asking(service: Service, state: McpState) -> None:
    """Add to a service what asks for each operation."""
    for questions in state.questions.values():
        asking = _Asking(state, questions)
        for prefix in (ASK, ANSWER):
            spec = questions.spec
            service.mutation(prefix + spec.name, timeout=None, limit=MAX_ASKING, errors=spec.errors)(asking.run)
            service.operations[-1] = replace(
                service.operations[-1],
                access=spec.access,
                namespace=spec.namespace,
                uses=spec.uses,
                authority=spec.authority,
                only_waits=prefix == ASK,
            )


@final
class _Asking:
    def __init__(self, state: McpState, questions: Questions) -> None:
        self._state = state
        self._questions = questions

    async def run(self, ctx: Context, params: Pending, /) -> Raw:
        questions, protocol = self._questions, params.protocol
        given = questions.decode(params.arguments, params.where)
        values = answers_of(questions, params)
        capabilities = protocol.capabilities if protocol.modern else ctx.client.capabilities
        if missing := questions.missing(capabilities, values):
            raise FailureError(missing_capability(*missing) if protocol.modern else _CANNOT_ASK)
        while requests := await questions.ask(ctx, given, values, capabilities):
            if protocol.modern:
                return Raw(msgspec.json.encode(Outcome(self._required(params, values, requests), asks=True)))
            for name, request in requests.items():
                values[name] = await self._answer(ctx, name, request)
        arguments = self._questions.check_arguments(params.arguments, params.where)
        text = msgspec.json.encode({**arguments, **values})
        if params.is_task:
            from .tasks import Tasks  # late: few tools are both

            return Raw(msgspec.json.encode(await Tasks(self._state).create(ctx, questions.spec, text)))
        result = await self._call(ctx, params, text)
        return Raw(msgspec.json.encode(Outcome(Raw(result))))

    def _required(self, params: Pending, values: dict[str, Any], requests: Mapping[str, ClientRequest]) -> Raw:
        seal, operation = self._state.seal, self._questions.spec.name
        members = {
            "inputRequests": requests,
            "requestState": seal.close_state(operation, params.arguments, State(values, [*requests])),
        }
        return Raw(msgspec.json.encode(modern_members(members, self._state.server, result_type="input_required")))

    async def _answer(self, ctx: Context, name: str, request: ClientRequest) -> Any:
        try:
            params = request.params
            if "url" in params:  # 2025-11-25 has an id for each page, later revisions have none
                params = {**params, "elicitationId": secrets.token_urlsafe()}
            answer = await ctx.request(request.method, params, type=Raw, timeout=STATE_SECONDS)
            return self._questions.params[name].read(answer)
        except (ClientRefused, TimeoutError, UnusableAnswer):
            raise FailureError(replace(_NO_ANSWER, message=f"{_NO_ANSWER.message} for {name}")) from None

    async def _call(self, ctx: Context, params: Pending, text: bytes) -> bytes:
        spec = self._questions.spec
        timeout: Timeout = None if spec.timeout is UNSET else spec.timeout
        outcome = await self._state.host.inner_calls.run(
            replace(spec, timeout=timeout),
            text,
            spec.input.decode(text, params.where),
            metadata=ctx.service_params,
            sink=None,
            context_backend=context_backend_of(ctx),
            progress_token=params.protocol.token,
            rendering=Rendering(self._state.dialect, params.protocol, bytes),
        )
        if isinstance(outcome, bytes):
            return outcome
        raise FailureError(outcome)


_NO_ANSWER: Final = DomainFailure("NO_ANSWER", "The client did not bring a usable answer", http_status=504)
_CANNOT_ASK: Final = DomainFailure(
    "CLIENT_CANNOT_ASK", "The tool has to ask the client, which can't answer", http_status=400
)
