"""Implements the methods of A2A: the checks of every call, the work of each method, and the operations of the daemon for them.

A call is admitted, its interceptors run around it, and its errors are written in its version. Requests go to the request
handler, its results become JSON. Decides nothing about tasks. The only place that calls interceptors.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from inspect import getdoc
from math import inf
from typing import Any, Final, Literal, Self, TypeAlias, final

import msgspec
from msgspec import UNSET, Raw
from msgspec.structs import replace

from ..a2a.card import Extension, required_scopes
from ..a2a.errors import EventsLost, InvalidStateTransition, TaskConflict, UnknownSkill, does_not_stream
from ..a2a.methods import V03_METHODS, V10_METHODS
from ..a2a.task import check_json_depth, check_media_types
from ..a2a.types import PushConfig, SendRequest, StreamItem, TaskState, TaskUpdate
from ..a2a.v10 import encode_task_page, without_contents
from ..a2a.version import ListRequest, ProtocolVersion, PushConfigRequest, TaskRequest, failure_in
from ..daemon.dispatch.execution import Raised, attempt
from ..daemon.logs import log
from ..daemon.operations.access import Access, AccessRule, challenge
from ..daemon.operations.context import LAST_EVENT_ID, Context, name_task
from ..daemon.operations.spec import ClientGroup, OperationKind, OperationSpec, ServerEvent, Timeout
from ..errors.decoders import DECODE_ERRORS, convert
from ..errors.exceptions import FailureError
from ..errors.failures import (
    Cancelled,
    ExtensionSupportRequired,
    Failure,
    InsufficientPermissions,
    Internal,
    TimedOut,
    Unavailable,
    UnsupportedOperation,
    VersionNotSupported,
)
from ..errors.redaction.safe_call import type_name
from ..lazy import anyio
from .agent import Agent, AgentCall, CallResult, Interceptor, Outcome
from .card_builder import CardBuilder
from .notifier import PushNotifier
from .request_handler import OPERATION, Caller, RequestHandler, task_scope
from .runner import declared_failure
from .stores.checks import MAX_PAGE_BYTES
from .stores.failures import log_failure
from .stores.interface import StoreError, StoreUnavailableError

AFTER_CANCEL_SECONDS: Final = 1.0
"""How long the `after` methods together may take when the call was cancelled."""

_VERSION_SUGGESTIONS: Final[Mapping[str, str]] = {
    "1.0": "Send A2A-Version: 1.0. By HTTP a request without that header is one of 0.3.",
    "0.3": "Send A2A-Version: 0.3, or none.",
}
_NO_RESUMING: Final = UnsupportedOperation(
    reason="A message is sent once.",
    suggestion="Subscribe to its task with SubscribeToTask to get the events after one.",
)


_NAME_EXTENSIONS: Final = "Name the accepted extensions in A2A-Extensions."


# -- what every call passes --------------------------------------------------------------------------------------------


@final
class CallPipeline:
    """One per daemon. `rule` is that of the agent's methods: one of its security requirements with all its scopes is enough.

    `handler` is the request handler. `extensions` are those of the agent, and `streaming` says whether
    it streams. The daemon's identity provider has made identities of credentials before.
    """

    def __init__(
        self,
        handler: RequestHandler,
        agent: Agent | None,
        access: Access,
        *,
        extensions: Sequence[Extension],
        streaming: bool,
        request_timeout: float | None,
    ) -> None:
        requirements = () if agent is None else agent.card.security_requirements
        self.rule: Final = AccessRule(
            public=any(not requirement.schemes for requirement in requirements),
            known=agent is not None,
            alternatives=tuple(map(required_scopes, requirements)),
        )
        self.handler: Final = handler
        self.streaming: Final = streaming
        self.interceptors: Final = () if agent is None else agent.interceptors
        self.limit: Final = inf if request_timeout is None else request_timeout
        self._provider = access.provider
        self._allows_all = self.rule.public or self.rule.open
        self._required = frozenset(each.uri for each in extensions if each.required)

    def caller(self, ctx: Context, version: ProtocolVersion) -> Caller:
        """Return who makes this call of a method of `version`. Raises `FailureError` where it is refused."""
        params, identity, rule = ctx.service_params, ctx.identity, self.rule
        if identity is None and not rule.public and rule.known and self._provider is not None:
            raise FailureError(challenge(self._provider))
        if identity is not None and not (self._allows_all or rule.allows(identity)):
            raise FailureError(InsufficientPermissions())
        refusal = self.refusal(version, params) if params or self._required else None
        if refusal is not None:
            raise FailureError(refusal)
        return Caller(task_scope(identity), version.name, identity, _extensions(params) if params else (), params)

    def refusal(self, version: ProtocolVersion, params: Mapping[str, str]) -> Failure | None:
        """Return why a call of a method of `version` with these service parameters is refused, for any caller."""
        wanted = params.get("a2a-version")
        if wanted and wanted.strip() and not version.covers(wanted.strip()):
            suggestion = _VERSION_SUGGESTIONS[version.name]
            return VersionNotSupported(version=version.name, accepted=(version.name,), suggestion=suggestion)
        missing = self._required.difference(_extensions(params)) if self._required else ()
        if not missing:
            return None
        accepted = tuple(sorted(missing))
        return ExtensionSupportRequired(version=version.name, accepted=accepted, suggestion=_NAME_EXTENSIONS)


def _extensions(params: Mapping[str, str]) -> tuple[str, ...]:
    named = params.get("a2a-extensions")
    uris = (uri.strip() for uri in named.split(",")) if named else ()
    return tuple(uri for uri in uris if uri and uri != OPERATION)


@final
class AdmittedCall:
    """A call from its admission to its end: `async with` it. In the block it has its `handler` and its `caller`; the block sets
    `result`, for the interceptors.

    Raises `FailureError` where the call is refused, an interceptor takes too long, or the store fails. The `FailureError` of the
    block is raised as its version writes it, its other exceptions as they are. Behind it `result` is what the interceptors made
    of it.
    """

    caller: Caller
    _told: AgentCall

    def __init__(
        self,
        pipeline: CallPipeline,
        ctx: Context,
        version: ProtocolVersion,
        params: object,
        task_id: str | None,
        *,
        streaming: bool = False,
    ) -> None:
        self._pipeline = pipeline
        self.handler: Final = pipeline.handler
        self._ctx = ctx
        self._version = version
        self._params = params
        self._task_id = task_id
        self._streaming = streaming
        self._passed: Sequence[Interceptor] = ()
        self.result: Any = None  # Any: its type depends on the method

    async def __aenter__(self) -> Self:
        try:
            self.caller = self._pipeline.caller(self._ctx, self._version)
            if self._streaming and not self._pipeline.streaming:
                raise FailureError(does_not_stream(sends=isinstance(self._params, SendRequest)))
            if not self.handler.is_ready:
                await self.handler.ready()
            if self._pipeline.interceptors:
                await self._before(self._pipeline.interceptors)
        except BaseException as exc:
            await self.__aexit__(type(exc), exc, None)
            raise
        return self

    async def __aexit__(self, kind: type[BaseException] | None, exc: BaseException | None, traceback: object) -> None:
        if self._passed:
            await self._after(exc)
        if exc is None:
            return
        written = _written_in(self._version, exc)
        try:
            if written is not exc:
                raise written from None
        finally:
            del written, exc  # its traceback holds this frame

    async def _before(self, interceptors: Sequence[Interceptor]) -> None:
        """Run `before` of all of them. Those that let the call pass hear of its end."""
        caller = self.caller
        self._told = AgentCall(
            self._ctx.operation, caller.version, caller.identity, caller.service_params, self._task_id, self._params
        )
        with anyio.move_on_after(self._pipeline.limit) as scope:
            for interceptor in interceptors:
                await self._pass(interceptor)
                self._passed = (*self._passed, interceptor)
        if scope.cancelled_caught:
            self._log_timeout(interceptors[len(self._passed)])
            raise FailureError(TimedOut())

    async def _pass(self, interceptor: Interceptor) -> None:
        done = await attempt(lambda: interceptor.before(self._told), step="interceptor.before")
        if not isinstance(done, Raised):
            return
        failure = declared_failure(done.exc)
        if failure is None:
            log.error("interceptor.failed", method=self._told.method, exc=done.exc)
        raise FailureError(failure or Internal())

    async def _after(self, exc: BaseException | None) -> None:
        """Raises `FailureError(Internal)` for a change of the result that is none of its type."""
        outcome: Outcome = CallResult(self.result)
        if exc is not None:
            outcome = Cancelled() if _is_cancellation(exc) else declared_failure(exc) or Internal()
        cancelled = isinstance(outcome, Cancelled)
        deadline = anyio.current_time() + (AFTER_CANCEL_SECONDS if cancelled else self._pipeline.limit)
        interceptor = self._passed[-1]
        with anyio.CancelScope(shield=cancelled, deadline=deadline) as scope:
            for interceptor in reversed(self._passed):
                done = await attempt(partial(interceptor.after, self._told, outcome), step="interceptor.after")
                if isinstance(done, Raised):
                    log.error("interceptor.failed", method=self._told.method, exc=done.exc)
                elif done is not None:
                    outcome = self._changed(outcome, done, interceptor)
        if scope.cancelled_caught:
            self._log_timeout(interceptor)
        if exc is None and isinstance(outcome, CallResult):
            self.result = outcome.result
        elif exc is None:
            raise FailureError(Internal())

    def _changed(self, outcome: Outcome, changed: object, interceptor: Interceptor) -> Outcome:
        """Return what an interceptor has made of an outcome; `Internal` for what is none."""
        if isinstance(outcome, CallResult) and isinstance(changed, CallResult):
            before, after = outcome.result, changed.result
            if after is before or (_is_sound(after, type(before)) and _id_of(after) == _id_of(before)):
                return changed
        kind, expected = (
            type_name(each.result if isinstance(each, CallResult) else each) for each in (changed, outcome)
        )
        log.error(
            "interceptor.wrong_result",
            method=self._told.method,
            interceptor=type(interceptor).__name__,
            type=kind,
            expected=expected,
        )
        return outcome if isinstance(outcome, Failure) else Internal()

    def _log_timeout(self, interceptor: Interceptor) -> None:
        log.error("interceptor.timed_out", method=self._told.method, interceptor=type(interceptor).__name__)


def _is_sound(value: object, kind: type) -> bool:
    """Whether a value is of the type, and all that it holds of the types that are declared."""
    if type(value) is not kind or value is None:
        return False
    try:
        items: Sequence[object] = value if isinstance(value, list | tuple) else (value,)
        for each in items:
            convert(msgspec.to_builtins(each), type(each))
    except (*DECODE_ERRORS, ValueError):
        return False
    return True


def _id_of(result: object) -> object:
    """The id of a task, a message or a push config, which a change must not touch."""
    return getattr(result, "id", getattr(result, "message_id", None))


def _is_cancellation(exc: BaseException) -> bool:
    return isinstance(exc, (anyio.get_cancelled_exc_class(), GeneratorExit))


def _written_in(version: ProtocolVersion, exc: BaseException) -> BaseException:
    """Return what is raised in place of this exception, in the words of the version; the exception itself where it needs none."""
    match exc:
        case FailureError():
            return FailureError(failure_in(version, exc.failure))
        case InvalidStateTransition():
            current, target = (version.states[TaskState(each)] for each in (exc.current, exc.target))
            return InvalidStateTransition(current=current, target=target)
        case StoreUnavailableError():
            log_failure(exc)
            return FailureError(Unavailable(exc.retry_after_ms))
        case StoreError():
            log_failure(exc)
            return FailureError(Internal())
        case _:
            return exc


# -- what each method does ---------------------------------------------------------------------------------------------


@final
class JsonRpcHandler:
    """The methods of one version. `input_modes` are the media types that the agent accepts, None for any."""

    def __init__(
        self,
        pipeline: CallPipeline,
        version: ProtocolVersion,
        notifier: PushNotifier | None,
        cards: CardBuilder,
        *,
        input_modes: Sequence[str] | None,
    ) -> None:
        self._pipeline = pipeline
        self._version = version
        self._notifier = notifier
        self._cards = cards
        self._input_modes = input_modes

    # -- messages ----------------------------------------------------------------------------------------------

    async def send(self, ctx: Context, request: SendRequest) -> Raw:
        """Send a message to the agent, and wait for its task or its reply."""
        async with self._call(ctx, request, request.message.task_id) as call:
            call.result = await call.handler.send(self._checked(request), call.caller)
        return self._version.encode_send_result(call.result, history_length=request.configuration.history_length)

    async def stream(self, ctx: Context, request: SendRequest) -> AsyncGenerator[Raw | ServerEvent[Raw], None]:
        """Send a message to the agent, and get everything that happens to its task."""
        if LAST_EVENT_ID in ctx.service_params:  # it has the number of an event, and so the id of the task
            raise FailureError(failure_in(self._version, _NO_RESUMING))
        history_length = request.configuration.history_length
        async with (
            self._call(ctx, request, request.message.task_id, streaming=True) as call,
            aclosing(call.handler.stream(self._checked(request), call.caller)) as items,
        ):
            async for item in items:
                written = self._written(item, history_length)
                if written is not None:
                    yield written

    # -- tasks -------------------------------------------------------------------------------------------------

    async def subscribe(self, ctx: Context, request: TaskRequest) -> AsyncGenerator[Raw | ServerEvent[Raw], None]:
        """Get a task, and everything that happens to it from then on; or, after the event whose number the service parameter
        `last-event-id` holds, everything that has happened since."""
        after, until = ctx.last_event_id, self._version.subscribe_until
        async with (
            self._call(ctx, request, request.task_id, streaming=True) as call,
            aclosing(call.handler.subscribe(request.task_id, call.caller, until=until, after=after)) as items,
        ):
            async for item in items:
                written = self._written(item)
                if written is not None:
                    yield written

    async def get(self, ctx: Context, request: TaskRequest) -> Raw:
        """Get a task as it is."""
        async with self._call(ctx, request, request.task_id) as call:
            call.result = await call.handler.get(request.task_id, call.caller)
        return self._version.encode_task(call.result, history_length=request.history_length)

    async def list(self, ctx: Context, request: ListRequest) -> Raw:
        """List the caller's tasks, the last changed first. A page has at most `MAX_PAGE_BYTES`."""
        async with self._call(ctx, request) as call:
            query = replace(request.query, scope=call.caller.scope)
            page = encode_task_page(listed := await call.handler.list(query), request)
            while len(page) > MAX_PAGE_BYTES and len(listed.tasks) > 1:  # the JSON may be larger than what is stored
                query = replace(query, page_size=len(listed.tasks) // 2)
                page = encode_task_page(listed := await call.handler.list(query), request)
            call.result = listed
        if call.result is not listed:
            page = encode_task_page(listed := call.result, request)
        if len(page) > MAX_PAGE_BYTES:
            page = encode_task_page(replace(listed, tasks=tuple(map(without_contents, listed.tasks))), request)
        return page

    async def cancel(self, ctx: Context, request: TaskRequest) -> Raw:
        """Cancel a task."""
        async with self._call(ctx, request, request.task_id) as call:
            call.result = await call.handler.cancel(request.task_id, request.metadata, call.caller)
        return self._version.encode_task(call.result)

    # -- push configs ------------------------------------------------------------------------------------------

    async def put_config(self, ctx: Context, config: PushConfig) -> Raw:
        """Have the updates of a task sent to a URL."""
        task_id, version = config.task_id or "", self._version
        async with self._call(ctx, config, task_id) as call:
            if self._notifier is not None:
                self._notifier.check_config(config, param=version.push_config_path)
            stored = await call.handler.push_configs.put(task_id, config, scope=call.caller.scope, version=version.name)
            call.result = stored
        return version.encode_push_config(call.result)

    async def get_config(self, ctx: Context, request: PushConfigRequest) -> Raw:
        """Get one of a task's push configs."""
        async with self._call(ctx, request, request.task_id) as call:
            configs, scope = call.handler.push_configs, call.caller.scope
            call.result = await configs.get(request.task_id, request.config_id, scope=scope)
        return self._version.encode_push_config(call.result)

    async def list_configs(self, ctx: Context, request: PushConfigRequest) -> Raw:
        """List a task's push configs."""
        async with self._call(ctx, request, request.task_id) as call:
            call.result = await call.handler.push_configs.list(request.task_id, scope=call.caller.scope)
        return self._version.encode_push_configs(call.result)

    async def delete_config(self, ctx: Context, request: PushConfigRequest) -> Raw:
        """Delete one of a task's push configs."""
        async with self._call(ctx, request, request.task_id) as call:
            configs, scope = call.handler.push_configs, call.caller.scope
            await configs.delete(request.task_id, request.config_id or "", scope=scope)
        return self._version.empty_result

    # -- the card ----------------------------------------------------------------------------------------------

    async def extended_card(self, ctx: Context) -> Raw:
        """Get the agent's card for authenticated callers."""
        async with self._call(ctx, None) as call:
            unsupported = self._version.no_extended_card
            call.result = self._cards.for_caller(ctx.identity, url=ctx.url, unsupported=unsupported)
        return Raw(msgspec.json.encode(self._version.card(call.result)))

    # -- steps -------------------------------------------------------------------------------------------------

    def _call(
        self, ctx: Context, params: object, task_id: str | None = None, *, streaming: bool = False
    ) -> AdmittedCall:
        name_task(ctx, task_id)
        return AdmittedCall(self._pipeline, ctx, self._version, params, task_id, streaming=streaming)

    def _written(self, item: StreamItem, history_length: int | None = None) -> Raw | ServerEvent[Raw] | None:
        """Return the item as an event, with its number where it is one of the task's log."""
        written = self._version.encode_stream_item(item, history_length=history_length)
        if written is not None and isinstance(item, TaskUpdate):
            return ServerEvent(written, id=item.generation)
        return written

    def _checked(self, request: SendRequest) -> SendRequest:
        """Return the request, if the agent accepts its message and its push config. Raises `FailureError`."""
        check_json_depth(request.message, request.metadata)
        if self._input_modes is not None:
            check_media_types(request.message, self._input_modes)
        config = request.configuration.task_push_notification_config
        if config is not None and self._notifier is not None:
            self._notifier.check_config(config, param=self._version.message_push_config_path)
        return request


# -- the operations of the daemon --------------------------------------------------------------------------------------


MAX_WAITING: Final = 1024
"""Messages of one version whose senders may wait for their tasks at the same time."""

MAX_READING: Final = 8
"""Calls of one client that may read tasks at the same time. A reply is as large as its tasks: the next call begins when the
client has taken most of the replies before it, instead of adding one that does not fit."""

ERRORS: Final = (UnknownSkill, InvalidStateTransition, TaskConflict, EventsLost)
"""The errors that every method declares."""

Handle: TypeAlias = Callable[..., Any]
"""Takes the handler, a context and a request; a coroutine function or an asynchronous generator function."""


class _Method(msgspec.Struct, frozen=True):
    """A method, the same in every version. With `group` None, `limit` means nothing."""

    kind: OperationKind
    handle: Handle
    timeout: Timeout = UNSET
    group: ClientGroup | Literal[True] | None = None
    limit: int = 1
    only_waits: bool = False


_READING: Final = ClientGroup("tasks")
_LIST: Final = _Method("query", JsonRpcHandler.list, group=_READING, limit=MAX_READING)

_ROWS: Final = (
    _Method("mutation", JsonRpcHandler.send, None, group=True, limit=MAX_WAITING, only_waits=True),
    _Method("subscription", JsonRpcHandler.stream, None, only_waits=True),
    _Method("query", JsonRpcHandler.get, group=_READING, limit=MAX_READING),
    _LIST,
    _Method("mutation", JsonRpcHandler.cancel, None),
    _Method("subscription", JsonRpcHandler.subscribe, None, only_waits=True),
    _Method("mutation", JsonRpcHandler.put_config),
    _Method("query", JsonRpcHandler.get_config),
    _Method("query", JsonRpcHandler.list_configs),
    _Method("mutation", JsonRpcHandler.delete_config),
    _Method("query", JsonRpcHandler.extended_card),
)
"""In the order of the names in `a2a.methods`. 0.3 has no list of tasks."""

_METHODS: Final[Mapping[str, Mapping[str, _Method]]] = {
    "0.3": dict(zip(V03_METHODS, (row for row in _ROWS if row is not _LIST), strict=True)),
    "1.0": dict(zip(V10_METHODS, _ROWS, strict=True)),
}


def operations(pipeline: CallPipeline, version: ProtocolVersion, handler: JsonRpcHandler) -> Iterator[OperationSpec]:
    """Yield the methods of a version, which the pipeline's rule lets callers call."""
    for name, method in _METHODS[version.name].items():
        yield OperationSpec(
            name=name,
            kind=method.kind,
            mode="stream" if method.kind == "subscription" else "async",
            input=version.inputs[name],
            invoke=partial(_invoke, method.handle, handler),
            returns=Any,
            output=None,
            errors=ERRORS,
            description=getdoc(method.handle) or "",
            timeout=method.timeout,
            access=pipeline.rule,
            admits=partial(pipeline.refusal, version),
            concurrency_group=method.group,
            concurrency_limit=method.limit,
            only_waits=method.only_waits,
        )


def _invoke(handle: Handle, handler: JsonRpcHandler, ctx: Context, values: tuple[Any, ...]) -> Awaitable[Raw]:
    result: Awaitable[Raw] = handle(handler, ctx, *values)
    return result
