"""The composition root of agents: makes the executor, the push notifications, the cards and the methods that the settings
and the apps ask for. Runs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from ...a2a.card.v03 import card_to_v03
from ...a2a.requests import TaskUpdate
from ...a2a.states import INACTIVE, TERMINAL
from ...a2a.types import TaskEvent
from ...a2a.versions.v03 import V03
from ...a2a.versions.v10 import V10
from ...a2a.versions.version import ProtocolVersion
from ...daemon.memory import MemoryBudget
from ...daemon.operations.access import Access
from ...daemon.operations.service import Service
from ...daemon.operations.spec import OperationSpec
from ...daemon.settings import Settings
from ...version import __version__
from ..agent import Agent
from ..push.notifier import PushNotifier, is_push_available
from ..push.publisher import PushPublisher
from ..skills import SkillExecutor, SkillHost
from ..stores.interface import TaskStore
from ..task_memory import TaskMemory
from ..tasks.live_task import LiveTask
from .authorization import Authorization
from .call_pipeline import Admission, CallPipeline
from .card_builder import CardBuilder, stdio_interfaces
from .extended_card import ExtendedCard
from .jsonrpc_handler import JsonRpcHandler
from .methods import operations
from .runtime import Role, Runtime

if TYPE_CHECKING:
    from ...daemon.tracing.tracing import Tracing


class AgentServiceHost(SkillHost, Protocol):
    """What the agent needs of the daemon that it belongs to."""

    def spawn(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run this in the daemon's task group."""
        ...


class AgentParts(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent is made of. Without an `agent`, the operations of the `services` are its skills. Tasks in memory count in
    the `budget`. Without `tracing` no spans are recorded."""

    agent: Agent | None
    services: Sequence[Service]
    access: Access
    settings: Settings
    store: TaskStore
    budget: MemoryBudget
    tracing: Tracing | None = None


class Composed(msgspec.Struct, frozen=True):
    """The agent's runtime, which starts with the first call; what every call passes; its cards; and the methods of A2A.

    `make_rest_methods()` makes those of 0.3 once more, for HTTP+JSON, whose JSON is another there.
    """

    runtime: Runtime
    pipeline: CallPipeline
    cards: CardBuilder
    methods: list[OperationSpec]
    make_rest_methods: Callable[[], list[OperationSpec]]


def compose(daemon: AgentServiceHost, parts: AgentParts) -> Composed:
    """Make the agent."""
    agent, settings = parts.agent, parts.settings
    wants_push = agent is None or bool(agent.card.capabilities.push_notifications)
    pushes = wants_push and is_push_available()
    notifier = (
        PushNotifier(allow_private=settings.push_private, tracing=parts.tracing, budget=parts.budget)
        if pushes
        else None
    )
    runtime = _runtime(daemon, parts, notifier, lacks_push_extra=wants_push and notifier is None)
    cards = CardBuilder(
        parts.services,
        agent,
        parts.access,
        version=__version__,
        interfaces=stdio_interfaces(settings),
        pushes=notifier is not None,
    )
    authorization = Authorization(agent, parts.access)
    capabilities = cards.public().capabilities
    admission = Admission(authorization, capabilities.extensions)
    pipeline = CallPipeline(
        runtime,
        admission,
        streaming=bool(capabilities.streaming),
        interceptors=() if agent is None else agent.interceptors,
        request_timeout=settings.request_timeout,
    )
    extended_card = ExtendedCard(cards, authorization)

    def methods(*versions: ProtocolVersion) -> list[OperationSpec]:
        handlers = [_handler(each, pipeline, notifier, extended_card, agent) for each in versions]
        rule, refusal = authorization.rule, admission.refusal
        return [spec for each in handlers for spec in operations(each, rule, partial(refusal, each.version))]

    def rest_methods() -> list[OperationSpec]:
        from ...a2a.versions.v03_protojson import V03_REST  # late: few daemons are called in it

        return methods(V03_REST)

    return Composed(runtime, pipeline, cards, methods(V03, V10), rest_methods)


def _runtime(
    daemon: AgentServiceHost, parts: AgentParts, notifier: PushNotifier | None, *, lacks_push_extra: bool
) -> Runtime:
    agent, store = parts.agent, parts.store
    return Runtime(
        daemon.spawn,
        store,
        SkillExecutor(daemon) if agent is None else agent.executor,
        None if notifier is None else PushPublisher(notifier, _push_body),
        replies_without_task=agent is not None and agent.replies_without_task,
        lacks_push_extra=lacks_push_extra,
        memory=TaskMemory(parts.budget, durable=store.durable, free=store.free),
        tracing=parts.tracing,
        role=Role(
            executes=parts.settings.role != "front",
            queues=parts.settings.role != "both",
            max_runs=parts.settings.max_runs,
        ),
        name="operations" if agent is None else agent.card.name,
    )


def _push_body(live: LiveTask, event: TaskEvent, version: str) -> bytes | None:
    writer = V03 if version == V03.name else V10
    body = writer.encode_notification(TaskUpdate(live.id, live.context_id, event), live.task)
    return None if body is None else bytes(body)  # `Raw` only says that it is bytes


def _handler(
    version: ProtocolVersion,
    pipeline: CallPipeline,
    notifier: PushNotifier | None,
    extended_card: ExtendedCard,
    agent: Agent | None,
) -> JsonRpcHandler:
    old = version.name == V03.name
    return JsonRpcHandler(
        pipeline,
        version,
        notifier,
        extended_card,
        input_modes=None if agent is None else agent.input_modes,
        subscribe_until=INACTIVE if old else TERMINAL,
        write_card=card_to_v03 if old else lambda card: card,
    )
