"""How a message becomes an execution: for the task that it names, or for a new one. Waits for nothing but the store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import final

from ...a2a.draft import addressed, new_task
from ...a2a.errors import takes_no_message
from ...a2a.requests import SendRequest
from ...a2a.types import PushConfig, Task
from ...errors.exceptions import FailureError
from ...errors.failures import InvalidParams
from ..caller import Caller
from ..cluster.remote_submission import Delegator, RemoteSubmission
from ..tasks.executor import RequestContext
from ..tasks.live_task import LiveTask, raise_if_lost
from ..tasks.runner import Runner
from ..tasks.submitted import Submitted
from ..tasks.task_cache import TaskCache
from .push_configs import PushConfigs


@final
class Submission:
    """Submits messages to the runner, or to other daemons, with the push config that comes with them."""

    def __init__(self, cache: TaskCache, runner: Runner, delegator: Delegator, push_configs: PushConfigs) -> None:
        self._cache = cache
        self._runner = runner
        self._delegator = delegator
        self._push_configs = push_configs

    @asynccontextmanager
    async def submitted(
        self, request: SendRequest, caller: Caller, key: str, before: Submitted | None = None
    ) -> AsyncIterator[Submitted]:
        """The message, queued; its task stays in memory until the block ends. `key` tells the message from all others.

        `before` is what this gave the last time: its task was lost, as another daemon has changed it. The message is submitted
        again unless it is in the store.
        Raises `FailureError` where the message can't be accepted, and the executor's own refusal.
        """
        task_id = request.message.task_id
        if before is not None and before.stored:
            task_id = before.live.id
        if task_id:
            live = await self._cache.pin(task_id, caller.scope)
        else:
            live = self._cache.create(new_task(request.message), caller.scope)
        try:
            position = before.position if before is not None and before.stored else live.received.get(key)
            if position is not None:
                found = Submitted(live)
                found.accept(position)
                yield found
                return
            if caller.turn is not None:  # only this daemon has the caller's editor
                while live.remote and not (live.ended or live.lost):
                    await live.wait_for_change()
            await self._push_configs.refresh(live)
            yield self._submit(live, request, caller, key)
        finally:
            self._cache.unpin(live)

    def _submit(self, live: LiveTask, request: SendRequest, caller: Caller, key: str) -> Submitted:
        raise_if_lost(live)
        if live.ended:
            raise FailureError(takes_no_message(live))
        message, configuration = request.message, request.configuration
        if message.context_id not in (None, "", live.context_id):
            raise FailureError(InvalidParams("message.contextId", "the context of the task", "another"))
        config = configuration.task_push_notification_config
        if config is not None:
            self._push_configs.check_capacity(live)
        context = RequestContext(
            live.task(),
            addressed(message, live.id, live.context_id),
            request.metadata,
            configuration.accepted_output_modes,
            caller.extensions,
            caller.identity,
            caller.service_params,
            editor=None if caller.turn is None else caller.turn.editor,
        )
        if caller.turn is None and self._delegator.takes(live):
            return self._delegate(live, context, config, caller, key)
        execution = self._runner.submit(live, context)
        if caller.turn is not None:
            execution.accept_new()
            caller.turn.begin(live)
        if config is not None:
            self._push_configs.attach(live, config, caller.version)
        return execution

    def _delegate(
        self, live: LiveTask, context: RequestContext, config: PushConfig | None, caller: Caller, key: str
    ) -> RemoteSubmission:
        """Leave a message to another daemon. That one sends the push notifications."""
        if config is None:
            return self._delegator.submit(live, context, None, key)
        target = self._push_configs.target(live, config, caller.version)
        return self._delegator.submit(live, context, lambda: self._push_configs.save_and_activate(live, target), key)

    async def wait_stored(self, request: SendRequest, submitted: Submitted) -> Task:
        """The task as it is now, once it and the request's push config are in the store."""
        task = await submitted.wait_stored()
        config = request.configuration.task_push_notification_config
        if config is not None and not isinstance(submitted, RemoteSubmission):
            await self._push_configs.save(submitted.live)
        return task
