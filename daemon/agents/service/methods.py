"""The methods of both dialects as operations of the daemon.

Beside `runtime` the other half of the composition root: makes the store, the executor, the push notifications and the
cards that the settings and the apps ask for.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final, Protocol, TypeAlias

from msgspec import Raw

from .... import __version__
from ...operations.access import Access
from ...operations.context import Context
from ...operations.service import Service
from ...operations.spec import OperationKind, OperationSpec
from ...settings import Settings
from ..agent import Agent
from ..card.model import AgentCard
from ..card.v03 import card_v03
from ..model.states import RESTING, TERMINAL
from ..model.types import Event
from ..push.notifier import PushNotifier, available
from ..skills import Operations, SkillExecutor, UnknownSkill
from ..stores.factory import store_of
from ..tasks.executor import InvalidStateTransition
from ..tasks.live_task import LiveTask
from ..tasks.runner import TaskConflict
from ..versions.v03 import V03
from ..versions.v10 import V10
from .call_pipeline import CallPipeline, Host
from .calls import Calls
from .card_builder import CardBuilder, stdio_interfaces
from .request_handler import EventsLost, Happened
from .runtime import Runtime

MOST_WAITING: Final = 1024
"""Messages of one dialect whose senders may wait for their tasks at the same time."""

ERRORS: Final = (UnknownSkill, InvalidStateTransition, TaskConflict, EventsLost)

Method: TypeAlias = Callable[
    ..., Any
]  # of a context and a request: a coroutine function, or what gives an asynchronous generator


class AgentServiceHost(Host, Operations, Protocol):
    """What the agent needs of the daemon that it belongs to."""


def agent_methods(
    daemon: AgentServiceHost, agent: Agent | None, services: Sequence[Service], access: Access, settings: Settings
) -> tuple[Runtime, Iterable[OperationSpec]]:
    """The agent's runtime, which begins with the first call, and its methods."""
    wanted = agent is None or agent.card.capabilities.push_notifications
    pusher = PushNotifier(allow_private=settings.push_private) if wanted and available() else None
    executor = SkillExecutor(daemon) if agent is None else agent.executor
    runtime = Runtime(store_of(settings.store), executor, pusher, _pushed)
    cards = CardBuilder(
        services,
        agent,
        access,
        version=__version__,
        interfaces=stdio_interfaces(settings),
        pushes=pusher is not None,
    )
    desk = CallPipeline(daemon, runtime, cards, agent, access)
    taken = None if agent is None else _taken(agent.card)
    v03 = Calls(desk, V03, pusher, taken, ends=RESTING, card=card_v03)
    v10 = Calls(desk, V10, pusher, taken, ends=TERMINAL, card=lambda card: card)
    return runtime, [*_specs(v03, _TABLE_03), *_specs(v10, _TABLE_10)]


def _taken(card: AgentCard) -> tuple[str, ...]:
    return (*card.default_input_modes, *(mode for skill in card.skills for mode in skill.input_modes))


def _pushed(live: LiveTask, event: Event, dialect: str) -> bytes | None:
    writer = V03 if dialect == V03.name else V10
    body = writer.pushed(Happened(live.id, live.context_id, event), live.task)
    return None if body is None else bytes(body)  # `Raw` only says that it is bytes


def _specs(calls: Calls, table: dict[str, tuple[OperationKind, Method]]) -> Iterable[OperationSpec]:
    for name, (kind, method) in table.items():
        yield OperationSpec(
            name=name,
            kind=kind,
            mode="stream" if kind == "subscription" else "async",
            input=calls.dialect.inputs[name],
            invoke=partial(_invoke, method, calls),
            returns=Any,
            output=None,
            errors=ERRORS,
            description=(method.__doc__ or "").strip(),
            timeout=None,
            concurrency_group=True if method is Calls.send else None,
            only_waits=True,
            concurrency_limit=MOST_WAITING,
        )


def _invoke(method: Method, calls: Calls, ctx: Context, values: tuple[Any, ...]) -> Awaitable[Raw]:
    result: Awaitable[Raw] = method(calls, ctx, *values)
    return result


_TABLE_03: Final[dict[str, tuple[OperationKind, Method]]] = {
    "message/send": ("mutation", Calls.send),
    "message/stream": ("subscription", Calls.stream),
    "tasks/get": ("query", Calls.get),
    "tasks/cancel": ("mutation", Calls.cancel),
    "tasks/resubscribe": ("subscription", Calls.subscribe),
    "tasks/pushNotificationConfig/set": ("mutation", Calls.put_config),
    "tasks/pushNotificationConfig/get": ("query", Calls.get_config),
    "tasks/pushNotificationConfig/list": ("query", Calls.list_configs),
    "tasks/pushNotificationConfig/delete": ("mutation", Calls.drop_config),
    "agent/getAuthenticatedExtendedCard": ("query", Calls.extended_card),
}
_TABLE_10: Final[dict[str, tuple[OperationKind, Method]]] = {
    "SendMessage": ("mutation", Calls.send),
    "SendStreamingMessage": ("subscription", Calls.stream),
    "GetTask": ("query", Calls.get),
    "ListTasks": ("query", Calls.list),
    "CancelTask": ("mutation", Calls.cancel),
    "SubscribeToTask": ("subscription", Calls.subscribe),
    "CreateTaskPushNotificationConfig": ("mutation", Calls.put_config),
    "GetTaskPushNotificationConfig": ("query", Calls.get_config),
    "ListTaskPushNotificationConfigs": ("query", Calls.list_configs),
    "DeleteTaskPushNotificationConfig": ("mutation", Calls.drop_config),
    "GetExtendedAgentCard": ("query", Calls.extended_card),
}
