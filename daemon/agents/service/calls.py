"""What each of the agent's methods does, in the words of one dialect and the deeds of the handler. Decides nothing itself."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import TypeVar, final

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from ....errors.exceptions import FailureError
from ....errors.failures import ExtendedAgentCardNotConfigured, Internal
from ...dispatch import execution
from ...logs import log
from ...operations.context import Context
from ..card.model import AgentCard
from ..model.content import check_content, check_depth
from ..model.types import PushConfig, TaskState
from ..push.notifier import PushNotifier
from ..versions.v10 import page
from ..versions.version import ConfigRequest, Dialect, ListRequest, TaskRequest
from .call_pipeline import CallPipeline
from .request_handler import Caller, RequestHandler, Sending, Streamed

T = TypeVar("T")


@final
class Calls:
    """What the methods of one dialect do. `taken` are the media types that the agent takes, None for whatever comes.

    `ends` are the states that end a subscription in it, `card` writes its agent card.
    """

    def __init__(
        self,
        desk: CallPipeline,
        dialect: Dialect,
        pusher: PushNotifier | None,
        taken: Sequence[str] | None,
        *,
        ends: frozenset[TaskState],
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
        result = await self._answer(
            ctx, sending.message.task_id, lambda handler, caller: handler.send(self._checked(sending), caller)
        )
        return self.dialect.sent(result, history=sending.configuration.history_length)

    def stream(self, ctx: Context, sending: Sending) -> AsyncGenerator[Raw, None]:
        """Send a message to the agent, and get everything that happens to its task."""
        return self._events(
            ctx,
            sending.message.task_id,
            lambda handler, caller: handler.stream(self._checked(sending), caller),
            history=sending.configuration.history_length,
        )

    def subscribe(self, ctx: Context, request: TaskRequest) -> AsyncGenerator[Raw, None]:
        """Get a task, and everything that happens to it from then on."""
        return self._events(
            ctx,
            request.task_id,
            lambda handler, caller: handler.subscribe(request.task_id, caller, until=self._ends),
        )

    async def get(self, ctx: Context, request: TaskRequest) -> Raw:
        """Get a task as it is."""
        task = await self._answer(ctx, request.task_id, lambda handler, caller: handler.get(request.task_id, caller))
        return self.dialect.task(task, history=request.history)

    async def list(self, ctx: Context, request: ListRequest) -> Raw:
        """List the caller's tasks, the last changed first."""
        listed = await self._answer(
            ctx, None, lambda handler, caller: handler.list(replace(request.query, scope=caller.scope))
        )
        return page(listed, request)

    async def cancel(self, ctx: Context, request: TaskRequest) -> Raw:
        """Cancel a task."""
        task_id = request.task_id
        task = await self._answer(
            ctx, task_id, lambda handler, caller: handler.cancel(task_id, request.metadata, caller)
        )
        return self.dialect.task(task)

    # -- push configs ------------------------------------------------------------------------------------------

    async def put_config(self, ctx: Context, config: PushConfig) -> Raw:
        """Have the news of a task sent to a URL."""
        task_id, dialect = config.task_id or "", self.dialect
        if self._pusher is not None:
            self._pusher.check(config, param=dialect.config_path)
        kept = await self._answer(
            ctx,
            task_id,
            lambda handler, caller: handler.targets.put(task_id, config, scope=caller.scope, dialect=dialect.name),
        )
        return dialect.push_config(kept)

    async def get_config(self, ctx: Context, request: ConfigRequest) -> Raw:
        """Get one of a task's push configs."""
        task_id, config_id = request.task_id, request.config_id
        config = await self._answer(
            ctx, task_id, lambda handler, caller: handler.targets.get(task_id, config_id, scope=caller.scope)
        )
        return self.dialect.push_config(config)

    async def list_configs(self, ctx: Context, request: ConfigRequest) -> Raw:
        """List a task's push configs."""
        task_id = request.task_id
        configs = await self._answer(
            ctx, task_id, lambda handler, caller: handler.targets.all(task_id, scope=caller.scope)
        )
        return self.dialect.push_configs(configs)

    async def drop_config(self, ctx: Context, request: ConfigRequest) -> Raw:
        """Have no more news of a task sent by one of its push configs."""
        task_id, config_id = request.task_id, request.config_id or ""
        await self._answer(
            ctx, task_id, lambda handler, caller: handler.targets.drop(task_id, config_id, scope=caller.scope)
        )
        return self.dialect.nothing

    # -- the card ----------------------------------------------------------------------------------------------

    async def extended_card(self, ctx: Context) -> Raw:
        """Get the agent's card for callers who have shown who they are."""

        async def work(_handler: object, _caller: object) -> Raw:
            return Raw(msgspec.json.encode(self._card(self._extended(ctx))))

        return await self._answer(ctx, None, work)

    def _extended(self, ctx: Context) -> AgentCard:
        cards = self._desk.cards
        if not cards.has_extended:
            raise FailureError(self.dialect.without_extended_card)
        identity = ctx.identity
        if identity is None:
            raise self._desk.challenge()
        made: list[AgentCard | None] = []
        fault = execution.attempt_now(lambda: made.append(cards.extended(identity)))
        if fault is not None:
            log.error("agent.failed", exc=fault)
            raise FailureError(Internal())
        if made[0] is None:
            raise FailureError(ExtendedAgentCardNotConfigured())
        return made[0]

    # -- on the way --------------------------------------------------------------------------------------------

    def _checked(self, sending: Sending) -> Sending:
        """A message that the agent can take. Raises `FailureError`."""
        check_depth(sending.message, sending.metadata)
        if self._taken is not None:
            check_content(sending.message, self._taken)
        config = sending.configuration.task_push_notification_config
        if config is not None and self._pusher is not None:
            self._pusher.check(config, param=self.dialect.sent_config_path)
        return sending

    async def _answer(
        self, ctx: Context, task_id: str | None, work: Callable[[RequestHandler, Caller], Awaitable[T]]
    ) -> T:
        return await self._desk.answer(ctx, self.dialect, work, task_id=task_id)

    async def _events(
        self,
        ctx: Context,
        task_id: str | None,
        work: Callable[[RequestHandler, Caller], AsyncGenerator[Streamed, None]],
        *,
        history: int | None = None,
    ) -> AsyncGenerator[Raw, None]:
        async with aclosing(self._desk.events(ctx, self.dialect, work, task_id=task_id)) as events:
            async for event in events:
                written = self.dialect.streamed(event, history=history)
                if written is not None:
                    yield written
