"""The methods of both versions of A2A as operations of the daemon: tables of what each one is. Runs nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from inspect import getdoc
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Raw

from ...a2a.errors import EventsLost, InvalidStateTransition, TaskConflict, UnknownSkill
from ...daemon.operations.access import AccessRule
from ...daemon.operations.context import Context
from ...daemon.operations.spec import ClientGroup, OperationKind, OperationSpec, Timeout
from ...errors.failures import Failure
from .jsonrpc_handler import JsonRpcHandler

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
