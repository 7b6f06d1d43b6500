"""Leaves messages to other daemons: to the one that works on the task, or to the first that has room for it. Executes nothing
itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, TypeAlias, final

import msgspec

from ....errors.exceptions import FailureError
from ....errors.failures import Overloaded
from ...dispatch.execution import Raised, attempt
from ..errors import takes_no_message
from ..model.ids import new_id
from ..model.states import INACTIVE, INTERRUPTED
from ..model.types import Message, MessageAdded, Task, TaskState
from ..stores.interface import MESSAGE, QUEUED, OwnerRequest, TaskStore
from ..tasks.executor import RequestContext
from ..tasks.live_task import LiveTask, wait_committed
from ..tasks.runner import Runner, Spawn
from ..tasks.submitted import Submitted
from ..tasks.task_cache import TaskCache
from .queued_message import decode_message, encode_message

SaveConfigs: TypeAlias = Callable[[], Awaitable[None]]

MAX_DELEGATIONS: Final = 1024
"""Messages that may be under way to other daemons; beyond it they are refused as overload. Each is until somebody has it, also
when its sender has gone."""


@final
class Delegation(Submitted):
    """One message that is left to another daemon, and what is seen of its task. The work on it counts as begun when the
    message is in the history.

    Where the other daemon stops before it takes the message, and this one executes messages itself, `execution` is that.
    `delegated` says that the store has the message. `fault` is what the store raised before.
    """

    __slots__ = ("context", "delegated", "execution", "fault", "key")

    def __init__(self, live: LiveTask, context: RequestContext) -> None:
        super().__init__(live)
        self.context = context
        self.key = new_id()
        self.delegated = False
        self.execution: Submitted | None = None
        self.fault: BaseException | None = None

    @property
    def message(self) -> Message:
        assert self.context.message is not None, "only messages are left to others"
        return self.context.message

    @property
    def accepted_generation(self) -> int | None:
        return self.start_generation if self.execution is None else self.execution.accepted_generation

    @property
    def over(self) -> bool:
        if self.execution is not None:
            return self.execution.over
        live = self.live
        return live.ended and self.accepted_generation is not None and live.committed == live.generation

    @property
    def began(self) -> int | None:
        return self.start_generation if self.execution is None else self.execution.began

    @property
    def given_up(self) -> bool:
        execution = self.execution
        return self.fault is not None or super().given_up or (execution is not None and execution.given_up)

    def raise_refusal(self) -> None:
        if self.fault is not None:
            raise self.fault
        if self.execution is not None:
            self.execution.raise_refusal()
        super().raise_refusal()

    async def wait_delegated(self) -> None:
        while not (self.delegated or self.given_up):
            await self.live.wait_for_change()
        self.raise_refusal()

    async def wait_stored(self) -> Task:
        await self.wait_delegated()
        return await wait_committed(self.live)


@final
class Delegator:
    """One per daemon. `queues` says that this daemon executes no message itself: those that no other one works on are left in
    the store's queue."""

    def __init__(self, store: TaskStore, cache: TaskCache, runner: Runner, spawn: Spawn, *, queues: bool) -> None:
        self._store = store
        self._cache = cache
        self._runner = runner
        self._count = 0
        self._spawn = spawn
        self._queues = queues

    def takes(self, live: LiveTask) -> bool:
        """Whether the next message for this task is one for other daemons."""
        return live.remote or (self._queues and not live.busy)

    def submit(self, live: LiveTask, context: RequestContext, save_configs: SaveConfigs | None) -> Delegation:
        """Leave the message of the context to another daemon. `save_configs()` stores the push configs that came with it, before
        anybody can work on it.

        Raises the executor's refusal, and `FailureError(Overloaded)`; then nothing was published.
        """
        self._runner.check(live, context)
        if self._count >= MAX_DELEGATIONS:
            raise FailureError(Overloaded())
        delegation = Delegation(live, context)
        if not live.generation:
            live.ensure_created()
            delegation.start_generation = live.generation
            if save_configs is None:
                self._queue(delegation)
                return delegation
        live.pins += 1
        self._count += 1
        self._cache.count_message(delegation.message, 1)
        self._spawn(partial(self._run, delegation, save_configs))
        return delegation

    def _queue(self, delegation: Delegation) -> None:
        delegation.live.queue(encode_message(delegation.context, accepted=True, key=delegation.key))
        delegation.delegated = True
        delegation.live.notify()

    async def _run(self, delegation: Delegation, save_configs: SaveConfigs | None) -> None:
        live = delegation.live
        try:
            done = await attempt(partial(self._delegate, delegation, save_configs))
            if isinstance(done, Raised):
                delegation.fault = done.exc
            if delegation.accepted_generation is None and live.ended and live.lost is None:
                delegation.refusal = takes_no_message(live)
        finally:
            self._count -= 1
            self._cache.count_message(delegation.message, -1)
            live.notify()
            self._cache.unpin(live)

    async def _delegate(self, delegation: Delegation, save_configs: SaveConfigs | None) -> None:
        live = delegation.live
        created = delegation.start_generation is not None
        await _until_stored(live)
        try:
            if save_configs is not None and live.lost is None:
                await save_configs()
            if not created:
                await self._leave_with_owner(delegation)
        finally:
            if created and live.lost is None and not live.ended:  # it is in the store, so somebody must work on it
                self._queue(delegation)
        if not (created or delegation.start_generation or live.ended or live.lost):
            self._continue(delegation)

    async def _leave_with_owner(self, delegation: Delegation) -> None:
        """Send the message to the daemon that works on the task, until it has published it, or nobody works on it any more.

        The store drops the request when the task stops; until then it goes to each new owner, which may become this daemon.
        None publishes such a message after it has stopped the task.
        """
        live = delegation.live
        body = encode_message(delegation.context, accepted=False, key=delegation.key)
        request = OwnerRequest(live.id, MESSAGE, body)
        asked: str | None = None
        expected = live.expect(decode_message(body).message)  # as the other daemon publishes it
        try:
            while live.lost is None and (live.remote or live.state not in INACTIVE):
                if live.remote_owner and live.remote_owner != asked:
                    is_inherited, asked = asked == QUEUED, live.remote_owner
                    if not is_inherited:
                        await self._store.send_owner_request(request)
                else:
                    await live.wait_for_change()
                if expected.generation:
                    delegation.start_generation = expected.generation
                    delegation.delegated = True
                    return live.notify()
        finally:
            live.expect_no_more(expected)

    def _continue(self, delegation: Delegation) -> None:
        """Nobody works on the task: publish the message here."""
        live = delegation.live
        if self._queues and not live.busy:
            if live.state in INTERRUPTED:
                live.set_status(TaskState.WORKING)
            live.publish(MessageAdded(delegation.message))
            delegation.start_generation = live.generation
            return self._queue(delegation)
        context = msgspec.structs.replace(delegation.context, task=live.task())
        delegation.execution = self._runner.submit(live, context)
        delegation.delegated = True
        live.notify()


async def _until_stored(live: LiveTask) -> None:
    """Wait until it is known who works on a task that was changed here."""
    while live.committed < live.generation and live.lost is None:
        await live.wait_for_change()
