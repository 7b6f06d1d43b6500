"""The methods of both dialects as operations of the daemon.

The composition root of this package, above `runtime`: makes the executor, the push notifications and the cards
that the settings and the apps ask for.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from functools import partial
from typing import Any, Final, Protocol, TypeAlias

from msgspec import UNSET, Raw

from .... import __version__
from ...memory import MemoryBudget
from ...operations.access import Access
from ...operations.context import Context
from ...operations.service import Service
from ...operations.spec import OperationKind, OperationSpec
from ...settings import Settings
from ..agent import Agent
from ..card.model import AgentCard
from ..card.v03 import card_to_v03
from ..errors import EventsLost, InvalidStateTransition, TaskConflict, UnknownSkill
from ..model.states import INACTIVE, TERMINAL
from ..model.types import TaskEvent
from ..push.notifier import PushNotifier, is_push_available
from ..requests import TaskUpdate
from ..skills import SkillExecutor, SkillHost
from ..stores.interface import TaskStore
from ..task_memory import TaskMemory
from ..tasks.live_task import LiveTask
from ..versions.v03 import V03
from ..versions.v10 import V10
from .authorization import Authorization
from .call_pipeline import CallPipeline
from .card_builder import CardBuilder, stdio_interfaces
from .extended_card import ExtendedCard
from .jsonrpc_handler import JsonRpcHandler
from .runtime import Runtime

MAX_WAITING: Final = 1024
"""Messages of one dialect whose senders may wait for their tasks at the same time."""

ERRORS: Final = (UnknownSkill, InvalidStateTransition, TaskConflict, EventsLost)
"""The errors that every method declares."""

Method: TypeAlias = Callable[..., Any]
"""Takes a context and a request; a coroutine function or an asynchronous generator function."""


class AgentServiceHost(SkillHost, Protocol):
    """What the agent needs of the daemon that it belongs to."""

    def spawn(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run this in the daemon's task group."""
        ...


def agent_methods(
    daemon: AgentServiceHost,
    agent: Agent | None,
    services: Sequence[Service],
    access: Access,
    settings: Settings,
    budget: MemoryBudget,
    *,
    store: TaskStore,
) -> tuple[Runtime, Iterable[OperationSpec]]:
    """The agent's runtime, which starts with the first call, and its methods. Tasks in memory count in the budget."""
    wants_push = agent is None or agent.card.capabilities.push_notifications
    notifier = PushNotifier(allow_private=settings.push_private) if wants_push and is_push_available() else None
    executor = SkillExecutor(daemon) if agent is None else agent.executor
    runtime = Runtime(
        store,
        executor,
        notifier,
        _push_body,
        replies_without_task=agent is not None and agent.replies_without_task,
        lacks_push_extra=bool(wants_push) and notifier is None,
        memory=TaskMemory(budget, durable=store.durable, free=store.free),
    )
    cards = CardBuilder(
        services,
        agent,
        access,
        version=__version__,
        interfaces=stdio_interfaces(settings),
        pushes=notifier is not None,
    )
    authorization = Authorization(agent, access)
    pipeline = CallPipeline(
        daemon.spawn,
        runtime,
        authorization,
        capabilities=cards.public().capabilities,
        interceptors=() if agent is None else agent.interceptors,
        request_timeout=settings.request_timeout,
    )
    extended_card = ExtendedCard(cards, authorization)
    input_modes = None if agent is None else _input_modes(agent.card)
    v03 = JsonRpcHandler(
        pipeline,
        V03,
        notifier,
        extended_card,
        input_modes=input_modes,
        subscribe_until=INACTIVE,
        write_card=card_to_v03,
    )
    v10 = JsonRpcHandler(
        pipeline,
        V10,
        notifier,
        extended_card,
        input_modes=input_modes,
        subscribe_until=TERMINAL,
        write_card=lambda card: card,
    )
    return runtime, [*_specs(v03, _METHODS_V03), *_specs(v10, _METHODS_V10)]


def _input_modes(card: AgentCard) -> tuple[str, ...]:
    return (*card.default_input_modes, *(mode for skill in card.skills for mode in skill.input_modes))


def _push_body(live: LiveTask, event: TaskEvent, dialect: str) -> bytes | None:
    writer = V03 if dialect == V03.name else V10
    body = writer.encode_notification(TaskUpdate(live.id, live.context_id, event), live.task)
    return None if body is None else bytes(body)  # `Raw` only says that it is bytes


def _specs(handler: JsonRpcHandler, table: dict[str, tuple[OperationKind, Method]]) -> Iterable[OperationSpec]:
    for name, (kind, method) in table.items():
        yield OperationSpec(
            name=name,
            kind=kind,
            mode="stream" if kind == "subscription" else "async",
            input=handler.dialect.inputs[name],
            invoke=partial(_invoke, method, handler),
            returns=Any,
            output=None,
            errors=ERRORS,
            description=(method.__doc__ or "").strip(),
            timeout=None if method in _WAITING else UNSET,
            concurrency_group=True if method is JsonRpcHandler.send else None,
            only_waits=method is JsonRpcHandler.send or kind == "subscription",
            concurrency_limit=MAX_WAITING,
        )


_WAITING: Final = (JsonRpcHandler.send, JsonRpcHandler.stream, JsonRpcHandler.subscribe, JsonRpcHandler.cancel)
"""The methods that wait for the agent, and have limits of their own."""


def _invoke(method: Method, handler: JsonRpcHandler, ctx: Context, values: tuple[Any, ...]) -> Awaitable[Raw]:
    result: Awaitable[Raw] = method(handler, ctx, *values)
    return result


_METHODS_V03: Final[dict[str, tuple[OperationKind, Method]]] = {
    "message/send": ("mutation", JsonRpcHandler.send),
    "message/stream": ("subscription", JsonRpcHandler.stream),
    "tasks/get": ("query", JsonRpcHandler.get),
    "tasks/cancel": ("mutation", JsonRpcHandler.cancel),
    "tasks/resubscribe": ("subscription", JsonRpcHandler.subscribe),
    "tasks/pushNotificationConfig/set": ("mutation", JsonRpcHandler.put_config),
    "tasks/pushNotificationConfig/get": ("query", JsonRpcHandler.get_config),
    "tasks/pushNotificationConfig/list": ("query", JsonRpcHandler.list_configs),
    "tasks/pushNotificationConfig/delete": ("mutation", JsonRpcHandler.delete_config),
    "agent/getAuthenticatedExtendedCard": ("query", JsonRpcHandler.extended_card),
}
_METHODS_V10: Final[dict[str, tuple[OperationKind, Method]]] = {
    "SendMessage": ("mutation", JsonRpcHandler.send),
    "SendStreamingMessage": ("subscription", JsonRpcHandler.stream),
    "GetTask": ("query", JsonRpcHandler.get),
    "ListTasks": ("query", JsonRpcHandler.list),
    "CancelTask": ("mutation", JsonRpcHandler.cancel),
    "SubscribeToTask": ("subscription", JsonRpcHandler.subscribe),
    "CreateTaskPushNotificationConfig": ("mutation", JsonRpcHandler.put_config),
    "GetTaskPushNotificationConfig": ("query", JsonRpcHandler.get_config),
    "ListTaskPushNotificationConfigs": ("query", JsonRpcHandler.list_configs),
    "DeleteTaskPushNotificationConfig": ("mutation", JsonRpcHandler.delete_config),
    "GetExtendedAgentCard": ("query", JsonRpcHandler.extended_card),
}
