"""The methods of both versions of A2A: what each one does, and the operations of the daemon that they are. Requests go to the
request handler, its results become JSON. Decides nothing about tasks.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from functools import partial
from inspect import getdoc
from typing import Any, Final, Literal, TypeAlias, final

import msgspec
from msgspec import UNSET, Raw
from msgspec.structs import replace

from ...a2a.card.model import AgentCard
from ...a2a.errors import EventsLost, InvalidStateTransition, TaskConflict, UnknownSkill
from ...a2a.task import check_json_depth, check_media_types
from ...a2a.types import PushConfig, SendRequest, StreamItem, TaskState, TaskUpdate
from ...a2a.versions.v10 import encode_task_page, without_contents
from ...a2a.versions.version import ListRequest, ProtocolVersion, PushConfigRequest, TaskRequest
from ...daemon.operations.access import AccessRule
from ...daemon.operations.context import LAST_EVENT_ID, Context, name_task
from ...daemon.operations.spec import ClientGroup, OperationKind, OperationSpec, ServerEvent, Timeout
from ...errors.exceptions import FailureError
from ...errors.failures import Failure, UnsupportedOperation
from ..push.notifier import PushNotifier
from ..stores.checks import MAX_PAGE_BYTES
from .call_pipeline import CallPipeline, Settle
from .card_builder import CardBuilder
from .request_handler import Caller, RequestHandler

_NO_RESUMING: Final = "A message is sent once. Subscribe to its task to get the events after one."


@final
class JsonRpcHandler:
    """The methods of one version.

    `input_modes` are the media types that the agent accepts, None for any. A subscription ends with one of the states
    `subscribe_until`. `write_card` makes the version's JSON type of a card.
    """

    def __init__(
        self,
        pipeline: CallPipeline,
        version: ProtocolVersion,
        notifier: PushNotifier | None,
        cards: CardBuilder,
        *,
        input_modes: Sequence[str] | None,
        subscribe_until: frozenset[TaskState],
        write_card: Callable[[AgentCard], object],
    ) -> None:
        self.version = version
        self._pipeline = pipeline
        self._notifier = notifier
        self._cards = cards
        self._input_modes = input_modes
        self._subscribe_until = subscribe_until
        self._write_card = write_card

    # -- messages ----------------------------------------------------------------------------------------------

    async def send(self, ctx: Context, request: SendRequest) -> Raw:
        """Send a message to the agent, and wait for its task or its reply."""
        async with self._call(ctx, request, request.message.task_id) as (handler, caller, settled):
            result = settled(await handler.send(self._checked(request), caller))
        return self.version.encode_send_result(result, history_length=request.configuration.history_length)

    async def stream(self, ctx: Context, request: SendRequest) -> AsyncGenerator[Raw | ServerEvent[Raw], None]:
        """Send a message to the agent, and get everything that happens to its task."""
        if LAST_EVENT_ID in ctx.service_params:  # whoever repeats a request after a lost connection would send it twice
            raise FailureError(UnsupportedOperation(version=self.version.name, reason=_NO_RESUMING))
        history_length = request.configuration.history_length
        async with (
            self._call(ctx, request, request.message.task_id, streaming=True) as (handler, caller, _),
            aclosing(handler.stream(self._checked(request), caller)) as items,
        ):
            async for item in items:
                written = self._written(item, history_length)
                if written is not None:
                    yield written

    # -- tasks -------------------------------------------------------------------------------------------------

    async def subscribe(self, ctx: Context, request: TaskRequest) -> AsyncGenerator[Raw | ServerEvent[Raw], None]:
        """Get a task, and everything that happens to it from then on; or, after the event whose number the service parameter
        `last-event-id` holds, everything that has happened since."""
        after = ctx.last_event_id
        async with (
            self._call(ctx, request, request.task_id, streaming=True) as (handler, caller, _),
            aclosing(handler.subscribe(request.task_id, caller, until=self._subscribe_until, after=after)) as items,
        ):
            async for item in items:
                written = self._written(item)
                if written is not None:
                    yield written

    async def get(self, ctx: Context, request: TaskRequest) -> Raw:
        """Get a task as it is."""
        async with self._call(ctx, request, request.task_id) as (handler, caller, settled):
            task = settled(await handler.get(request.task_id, caller))
        return self.version.encode_task(task, history_length=request.history_length)

    async def list(self, ctx: Context, request: ListRequest) -> Raw:
        """List the caller's tasks, the last changed first. A page has at most `MAX_PAGE_BYTES`."""
        async with self._call(ctx, request) as (handler, caller, settled):
            query = replace(request.query, scope=caller.scope)
            page = encode_task_page(listed := await handler.list(query), request)
            while len(page) > MAX_PAGE_BYTES and len(listed.tasks) > 1:  # the JSON may be larger than what is stored
                query = replace(query, page_size=len(listed.tasks) // 2)
                page = encode_task_page(listed := await handler.list(query), request)
            settled(listed)
        if len(page) > MAX_PAGE_BYTES:
            page = encode_task_page(replace(listed, tasks=tuple(map(without_contents, listed.tasks))), request)
        return page

    async def cancel(self, ctx: Context, request: TaskRequest) -> Raw:
        """Cancel a task."""
        async with self._call(ctx, request, request.task_id) as (handler, caller, settled):
            task = settled(await handler.cancel(request.task_id, request.metadata, caller))
        return self.version.encode_task(task)

    # -- push configs ------------------------------------------------------------------------------------------

    async def put_config(self, ctx: Context, config: PushConfig) -> Raw:
        """Have the updates of a task sent to a URL."""
        task_id, version = config.task_id or "", self.version
        async with self._call(ctx, config, task_id) as (handler, caller, settled):
            if self._notifier is not None:
                self._notifier.check_config(config, param=version.push_config_path)
            configs = handler.push_configs
            stored = settled(await configs.put(task_id, config, scope=caller.scope, version=version.name))
        return version.encode_push_config(stored)

    async def get_config(self, ctx: Context, request: PushConfigRequest) -> Raw:
        """Get one of a task's push configs."""
        async with self._call(ctx, request, request.task_id) as (handler, caller, settled):
            configs = handler.push_configs
            config = settled(await configs.get(request.task_id, request.config_id, scope=caller.scope))
        return self.version.encode_push_config(config)

    async def list_configs(self, ctx: Context, request: PushConfigRequest) -> Raw:
        """List a task's push configs."""
        async with self._call(ctx, request, request.task_id) as (handler, caller, settled):
            configs = settled(await handler.push_configs.list(request.task_id, scope=caller.scope))
        return self.version.encode_push_configs(configs)

    async def delete_config(self, ctx: Context, request: PushConfigRequest) -> Raw:
        """Delete one of a task's push configs."""
        async with self._call(ctx, request, request.task_id) as (handler, caller, _):
            await handler.push_configs.delete(request.task_id, request.config_id or "", scope=caller.scope)
        return self.version.empty_result

    # -- the card ----------------------------------------------------------------------------------------------

    async def extended_card(self, ctx: Context) -> Raw:
        """Get the agent's card for authenticated callers."""
        async with self._call(ctx, None) as (_, _, settled):
            card = settled(self._cards.for_caller(ctx.identity, url=ctx.url, unsupported=self.version.no_extended_card))
            return Raw(msgspec.json.encode(self._write_card(card)))

    # -- steps -------------------------------------------------------------------------------------------------

    def _call(
        self, ctx: Context, params: object, task_id: str | None = None, *, streaming: bool = False
    ) -> AbstractAsyncContextManager[tuple[RequestHandler, Caller, Settle]]:
        name_task(ctx, task_id)
        return self._pipeline.call(ctx, self.version, params, task_id=task_id, streaming=streaming)

    def _written(self, item: StreamItem, history_length: int | None = None) -> Raw | ServerEvent[Raw] | None:
        """The item as an event, with its number where it is one of the task's log."""
        written = self.version.encode_stream_item(item, history_length=history_length)
        return (
            ServerEvent(written, id=item.generation)
            if written is not None and isinstance(item, TaskUpdate)
            else written
        )

    def _checked(self, request: SendRequest) -> SendRequest:
        """The request, if the agent accepts its message and its push config. Raises `FailureError`."""
        check_json_depth(request.message, request.metadata)
        if self._input_modes is not None:
            check_media_types(request.message, self._input_modes)
        config = request.configuration.task_push_notification_config
        if config is not None and self._notifier is not None:
            self._notifier.check_config(config, param=self.version.message_push_config_path)
        return request


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
    """What a method is in every version. With `group` None, `limit` means nothing."""

    kind: OperationKind
    handle: Handle
    timeout: Timeout = UNSET
    group: ClientGroup | Literal[True] | None = None
    limit: int = 1
    only_waits: bool = False


_READING: Final = ClientGroup("tasks")

_SEND: Final = _Method("mutation", JsonRpcHandler.send, None, group=True, limit=MAX_WAITING, only_waits=True)
_STREAM: Final = _Method("subscription", JsonRpcHandler.stream, None, only_waits=True)
_SUBSCRIBE: Final = _Method("subscription", JsonRpcHandler.subscribe, None, only_waits=True)
_GET: Final = _Method("query", JsonRpcHandler.get, group=_READING, limit=MAX_READING)
_LIST: Final = _Method("query", JsonRpcHandler.list, group=_READING, limit=MAX_READING)
_CANCEL: Final = _Method("mutation", JsonRpcHandler.cancel, None)
_PUT_CONFIG: Final = _Method("mutation", JsonRpcHandler.put_config)
_GET_CONFIG: Final = _Method("query", JsonRpcHandler.get_config)
_LIST_CONFIGS: Final = _Method("query", JsonRpcHandler.list_configs)
_DELETE_CONFIG: Final = _Method("mutation", JsonRpcHandler.delete_config)
_EXTENDED_CARD: Final = _Method("query", JsonRpcHandler.extended_card)

_METHODS: Final[Mapping[str, Mapping[str, _Method]]] = {
    "0.3": {
        "message/send": _SEND,
        "message/stream": _STREAM,
        "tasks/get": _GET,
        "tasks/cancel": _CANCEL,
        "tasks/resubscribe": _SUBSCRIBE,
        "tasks/pushNotificationConfig/set": _PUT_CONFIG,
        "tasks/pushNotificationConfig/get": _GET_CONFIG,
        "tasks/pushNotificationConfig/list": _LIST_CONFIGS,
        "tasks/pushNotificationConfig/delete": _DELETE_CONFIG,
        "agent/getAuthenticatedExtendedCard": _EXTENDED_CARD,
    },
    "1.0": {
        "SendMessage": _SEND,
        "SendStreamingMessage": _STREAM,
        "GetTask": _GET,
        "ListTasks": _LIST,
        "CancelTask": _CANCEL,
        "SubscribeToTask": _SUBSCRIBE,
        "CreateTaskPushNotificationConfig": _PUT_CONFIG,
        "GetTaskPushNotificationConfig": _GET_CONFIG,
        "ListTaskPushNotificationConfigs": _LIST_CONFIGS,
        "DeleteTaskPushNotificationConfig": _DELETE_CONFIG,
        "GetExtendedAgentCard": _EXTENDED_CARD,
    },
}


def operations(
    handler: JsonRpcHandler, access: AccessRule, admits: Callable[[Mapping[str, str]], Failure | None]
) -> Iterator[OperationSpec]:
    """The methods of the handler's version, which this rule lets callers call, with service parameters that are admitted."""
    for name, method in _METHODS[handler.version.name].items():
        yield OperationSpec(
            name=name,
            kind=method.kind,
            mode="stream" if method.kind == "subscription" else "async",
            input=handler.version.inputs[name],
            invoke=partial(_invoke, method.handle, handler),
            returns=Any,
            output=None,
            errors=ERRORS,
            description=getdoc(method.handle) or "",
            timeout=method.timeout,
            access=access,
            admits=admits,
            concurrency_group=method.group,
            concurrency_limit=method.limit,
            only_waits=method.only_waits,
        )


def _invoke(handle: Handle, handler: JsonRpcHandler, ctx: Context, values: tuple[Any, ...]) -> Awaitable[Raw]:
    result: Awaitable[Raw] = handle(handler, ctx, *values)
    return result
