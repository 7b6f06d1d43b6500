"""The methods of both dialects as operations of the daemon: what each does, in terms of the handler.

Beside `runtime` the other half of the composition root: makes the store, the executor, the push notifications and the
cards that the settings and the apps ask for.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any, Final, Protocol, TypeAlias, final

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from ... import __version__
from ...errors.exceptions import FailureError
from ...errors.failures import (
    ExtendedAgentCardNotConfigured,
    Internal,
    UnsupportedOperation,
)
from .. import boundary
from ..logs import log
from ..operations.access import Access
from ..operations.context import Context
from ..operations.service import Service
from ..operations.spec import Kind, OperationSpec
from ..settings import Settings
from .agent import Agent
from .card import AgentCard
from .card_v03 import card_v03
from .content import check_content
from .derive import Cards, stdio_interfaces
from .desk import Desk, Host
from .dialect import ConfigRequest, Dialect, ListRequest, TaskRequest
from .dialect_v03 import V03
from .dialect_v10 import V10, page
from .executor import InvalidStateTransition
from .handler import EventsLost, Happened, Sending
from .live import Live
from .model import Event, PushConfig
from .push import Pusher, available
from .runs import TaskConflict
from .runtime import Runtime
from .skills import Operations, SkillExecutor, UnknownSkill
from .states import RESTING, TERMINAL
from .stores.chosen import store_of

MOST_WAITING: Final = 1024
"""Messages of one dialect whose senders may wait for their tasks at the same time."""

ERRORS: Final = (UnknownSkill, InvalidStateTransition, TaskConflict, EventsLost)

Method: TypeAlias = Callable[..., Any]  # a coroutine function or an asynchronous generator, of a context and a request


class Daemon(Host, Operations, Protocol):
    """What the agent needs of the daemon that it belongs to."""


def agent_methods(
    daemon: Daemon, agent: Agent | None, services: Sequence[Service], access: Access, settings: Settings
) -> tuple[Runtime, Iterable[OperationSpec]]:
    """The agent's runtime, which begins with the first call, and its methods."""
    wanted = agent is None or agent.card.capabilities.push_notifications
    pusher = Pusher(allow_private=settings.push_private) if wanted and available() else None
    executor = SkillExecutor(daemon) if agent is None else agent.executor
    runtime = Runtime(store_of(settings.store), executor, pusher, _pushed)
    cards = Cards(
        services,
        agent,
        access,
        version=__version__,
        interfaces=stdio_interfaces(settings),
        pushes=pusher is not None,
    )
    desk = Desk(daemon, runtime, cards, agent, access)
    taken = None if agent is None else _taken(agent.card)
    v03 = _Methods(desk, V03, pusher, taken, ends=RESTING, card=card_v03)
    v10 = _Methods(desk, V10, pusher, taken, ends=TERMINAL, card=lambda card: card)
    return runtime, [*_specs(v03, _TABLE_03), *_specs(v10, _TABLE_10)]


def _taken(card: AgentCard) -> tuple[str, ...]:
    return (*card.default_input_modes, *(mode for skill in card.skills for mode in skill.input_modes))


def _pushed(live: Live, event: Event, dialect: str) -> bytes | None:
    writer = V03 if dialect == V03.name else V10
    body = writer.pushed(Happened(live.id, live.context_id, event), live.task)
    return None if body is None else bytes(body)  # `Raw` only says that it is bytes


@final
class _Methods:
    """What the methods of one dialect do. `ends` are the states that end a subscription in it."""

    def __init__(
        self,
        desk: Desk,
        dialect: Dialect,
        pusher: Pusher | None,
        taken: Sequence[str] | None,
        *,
        ends: frozenset[Any],
        card: Callable[[AgentCard], object],
    ) -> None:
        self.dialect = dialect
        self._desk = desk
        self._pusher = pusher
        self._taken = taken
        self._ends = ends
        self._card = card

    async def send(self, ctx: Context, sending: Sending) -> Raw:
        """Send a message to the agent, and wait for its task or its reply."""
        history = sending.configuration.history_length
        result = await self._desk.answer(
            ctx,
            self.dialect,
            lambda handler, caller: handler.send(self._checked(sending), caller),
            task_id=sending.message.task_id,
        )
        return self.dialect.sent(result, history=history)

    async def stream(self, ctx: Context, sending: Sending) -> AsyncGenerator[Raw, None]:
        """Send a message to the agent, and get everything that happens to its task."""
        history = sending.configuration.history_length
        events = self._desk.events(
            ctx,
            self.dialect,
            lambda handler, caller: handler.stream(self._checked(sending), caller),
            task_id=sending.message.task_id,
        )
        async with aclosing(events):
            async for event in events:
                written = self.dialect.streamed(event, history=history)
                if written is not None:
                    yield written

    async def subscribe(self, ctx: Context, request: TaskRequest) -> AsyncGenerator[Raw, None]:
        """Get a task, and everything that happens to it from then on."""
        events = self._desk.events(
            ctx,
            self.dialect,
            lambda handler, caller: handler.subscribe(request.task_id, caller, until=self._ends),
            task_id=request.task_id,
        )
        async with aclosing(events):
            async for event in events:
                written = self.dialect.streamed(event)
                if written is not None:
                    yield written

    async def get(self, ctx: Context, request: TaskRequest) -> Raw:
        """Get a task as it is."""
        task = await self._desk.answer(
            ctx, self.dialect, lambda handler, caller: handler.get(request.task_id, caller), task_id=request.task_id
        )
        return self.dialect.task(task, history=request.history)

    async def list(self, ctx: Context, request: ListRequest) -> Raw:
        """List the caller's tasks, the last changed first."""
        listed = await self._desk.answer(
            ctx, self.dialect, lambda handler, caller: handler.list(replace(request.query, scope=caller.scope))
        )
        return page(listed, request)

    async def cancel(self, ctx: Context, request: TaskRequest) -> Raw:
        """Cancel a task."""
        task = await self._desk.answer(
            ctx,
            self.dialect,
            lambda handler, caller: handler.cancel(request.task_id, request.metadata, caller),
            task_id=request.task_id,
        )
        return self.dialect.task(task)

    # -- push configs ------------------------------------------------------------------------------------------

    async def put_config(self, ctx: Context, config: PushConfig) -> Raw:
        """Have the news of a task sent to a URL."""
        task_id = config.task_id or ""
        if self._pusher is not None:
            self._pusher.check(config, param="pushNotificationConfig" if self.dialect is V03 else "")
        kept = await self._desk.answer(
            ctx,
            self.dialect,
            lambda handler, caller: handler.targets.put(task_id, config, scope=caller.scope, dialect=self.dialect.name),
            task_id=task_id,
        )
        return self.dialect.push_config(kept)

    async def get_config(self, ctx: Context, request: ConfigRequest) -> Raw:
        """Get one of a task's push configs."""
        config = await self._desk.answer(
            ctx,
            self.dialect,
            lambda handler, caller: handler.targets.get(request.task_id, request.config_id, scope=caller.scope),
            task_id=request.task_id,
        )
        return self.dialect.push_config(config)

    async def list_configs(self, ctx: Context, request: ConfigRequest) -> Raw:
        """List a task's push configs."""
        configs = await self._desk.answer(
            ctx,
            self.dialect,
            lambda handler, caller: handler.targets.all(request.task_id, scope=caller.scope),
            task_id=request.task_id,
        )
        return self.dialect.push_configs(configs)

    async def drop_config(self, ctx: Context, request: ConfigRequest) -> Raw:
        """Have no more news of a task sent by one of its push configs."""
        await self._desk.answer(
            ctx,
            self.dialect,
            lambda handler, caller: handler.targets.drop(request.task_id, request.config_id or "", scope=caller.scope),
            task_id=request.task_id,
        )
        return self.dialect.nothing

    async def extended_card(self, ctx: Context) -> Raw:
        """Get the agent's card for callers who have shown who they are."""

        async def work(_handler: object, _caller: object) -> Raw:
            return Raw(msgspec.json.encode(self._card(self._extended(ctx))))

        return await self._desk.answer(ctx, self.dialect, work)

    def _extended(self, ctx: Context) -> AgentCard:
        cards = self._desk.cards
        if not cards.has_extended:
            unsupported = self.dialect is V10  # 1.0 section 3.3.4; 0.3 has one error for both
            raise FailureError(UnsupportedOperation() if unsupported else ExtendedAgentCardNotConfigured())
        identity = ctx.identity
        if identity is None:
            raise self._desk.challenge()
        made: list[AgentCard | None] = []
        fault = boundary.attempt_now(lambda: made.append(cards.extended(identity)))
        if fault is not None:
            log.error("agent.failed", exc=fault)
            raise FailureError(Internal())
        if made[0] is None:
            raise FailureError(ExtendedAgentCardNotConfigured())
        return made[0]

    def _checked(self, sending: Sending) -> Sending:
        """A message that the agent can take. Raises `FailureError`."""
        if self._taken is not None:
            check_content(sending.message, self._taken)
        config = sending.configuration.task_push_notification_config
        if config is not None and self._pusher is not None:
            name = "pushNotificationConfig" if self.dialect is V03 else "taskPushNotificationConfig"
            self._pusher.check(config, param=f"configuration.{name}")
        return sending


def _specs(methods: _Methods, table: dict[str, tuple[Kind, Method]]) -> Iterable[OperationSpec]:
    for name, (kind, method) in table.items():
        yield OperationSpec(
            name=name,
            kind=kind,
            mode="stream" if kind == "subscription" else "async",
            input=methods.dialect.inputs[name],
            invoke=partial(_invoke, method, methods),
            returns=Any,
            output=None,
            errors=ERRORS,
            description=(method.__doc__ or "").strip(),
            timeout=None,
            lane=True if method is _Methods.send else None,
            waits=True,
            width=MOST_WAITING,
        )


def _invoke(method: Method, methods: _Methods, ctx: Context, values: tuple[Any, ...]) -> Awaitable[Raw]:
    result: Awaitable[Raw] = method(methods, ctx, *values)
    return result


_TABLE_03: Final[dict[str, tuple[Kind, Method]]] = {
    "message/send": ("mutation", _Methods.send),
    "message/stream": ("subscription", _Methods.stream),
    "tasks/get": ("query", _Methods.get),
    "tasks/cancel": ("mutation", _Methods.cancel),
    "tasks/resubscribe": ("subscription", _Methods.subscribe),
    "tasks/pushNotificationConfig/set": ("mutation", _Methods.put_config),
    "tasks/pushNotificationConfig/get": ("query", _Methods.get_config),
    "tasks/pushNotificationConfig/list": ("query", _Methods.list_configs),
    "tasks/pushNotificationConfig/delete": ("mutation", _Methods.drop_config),
    "agent/getAuthenticatedExtendedCard": ("query", _Methods.extended_card),
}
_TABLE_10: Final[dict[str, tuple[Kind, Method]]] = {
    "SendMessage": ("mutation", _Methods.send),
    "SendStreamingMessage": ("subscription", _Methods.stream),
    "GetTask": ("query", _Methods.get),
    "ListTasks": ("query", _Methods.list),
    "CancelTask": ("mutation", _Methods.cancel),
    "SubscribeToTask": ("subscription", _Methods.subscribe),
    "CreateTaskPushNotificationConfig": ("mutation", _Methods.put_config),
    "GetTaskPushNotificationConfig": ("query", _Methods.get_config),
    "ListTaskPushNotificationConfigs": ("query", _Methods.list_configs),
    "DeleteTaskPushNotificationConfig": ("mutation", _Methods.drop_config),
    "GetExtendedAgentCard": ("query", _Methods.extended_card),
}
