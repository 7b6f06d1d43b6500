"""Leaves messages to other daemons: to the one that works on the task, or to the first that has room for it. Executes nothing
itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, TypeAlias, final

import msgspec

from ...a2a.errors import takes_no_message
from ...a2a.types import CallFacts, Message, Task
from ...daemon.dispatch.execution import Raised, attempt
from ...errors.exceptions import FailureError
from ...errors.failures import Overloaded
from ...lazy import anyio
from ..stores.interface import MESSAGE, QUEUED, OwnerRequest, TaskStore
from ..stores.serialization import decode_either
from ..tasks.execution import Submitted
from ..tasks.executor import RequestContext
from ..tasks.live_task import LiveTask, wait_committed
from ..tasks.runner import MAX_WAITING, Runner, Spawn, call_of
from ..tasks.task_cache import TaskCache

# A message as one daemon leaves it to another, which works on its task: the body of a request of the kind `MESSAGE`. Holds no
# credentials: the service params of the call, which may, stay behind.


class QueuedMessage(msgspec.Struct, frozen=True, omit_defaults=True):
    """It may be left more than once, which the `key` of its call tells."""

    message: Message
    call: CallFacts

    def context(self, task: Task) -> RequestContext:
        """What an executor is told."""
        call = self.call
        return RequestContext(
            task, self.message, call.metadata, call.accepted_output_modes, call.extensions, call.identity
        )


_msgpack: Final = msgspec.msgpack.Encoder()
_decoders: Final = (msgspec.msgpack.Decoder(QueuedMessage), msgspec.json.Decoder(QueuedMessage))


def encode_message(context: RequestContext, key: str) -> bytes:
    """The context of a message, for another daemon."""
    assert context.message is not None, "only messages are left to others"
    queued = QueuedMessage(context.message, call_of(context, key))
    try:
        return _msgpack.encode(queued)
    except OverflowError:  # JSON numbers have no limit, MessagePack's do
        return msgspec.json.encode(queued)


def decode_message(body: bytes) -> QueuedMessage:
    """Raises `msgspec.DecodeError` for what another version of this program may have left."""
    return decode_either(_decoders, body)


SaveConfigs: TypeAlias = Callable[[], Awaitable[None]]

RESEND_SECONDS: Final = 5.0
"""After so long a message is sent to the owner of its task once more."""

MAX_DELEGATIONS: Final = 1024
"""Messages that may be under way to other daemons; beyond it they are refused as overload. Each is until somebody has it, also
when its sender has gone."""


@final
class RemoteSubmission(Submitted):
    """One message that is left to another daemon. `delegated` says that the store has it, and what is to be done for it. `fault`
    is what was raised before."""

    __slots__ = ("context", "delegated", "fault", "key")

    def __init__(self, live: LiveTask, context: RequestContext, key: str) -> None:
        super().__init__(live)
        self.context = context
        self.key = key
        self.delegated = False
        self.fault: BaseException | None = None

    @property
    def message(self) -> Message:
        assert self.context.message is not None, "only messages are left to others"
        return self.context.message

    @property
    def given_up(self) -> bool:
        return self.fault is not None or super().given_up

    def raise_refusal(self) -> None:
        if self.fault is not None:
            raise self.fault
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

    def submit(
        self, live: LiveTask, context: RequestContext, save_configs: SaveConfigs | None, key: str
    ) -> RemoteSubmission:
        """Leave the message of the context to another daemon. `save_configs()` stores the push configs that came with it, before
        anybody can work on it. `key` tells the message from all others, however often it is submitted.

        Raises the executor's refusal, and `FailureError(Overloaded)`; then nothing was published.
        """
        self._runner.check(live, context)
        if self._count >= MAX_DELEGATIONS:
            raise FailureError(Overloaded())
        remote_submission = RemoteSubmission(live, context, key)
        if not live.generation:
            live.ensure_created(call_of(context), begun=False)
            if save_configs is None:
                live.queue()
                remote_submission.delegated = True
                return remote_submission
        live.pins += 1
        self._count += 1
        self._cache.count_message(remote_submission.message, 1)
        self._spawn(partial(self._run, remote_submission, save_configs))
        return remote_submission

    async def _run(self, remote_submission: RemoteSubmission, save_configs: SaveConfigs | None) -> None:
        live = remote_submission.live
        try:
            done = await attempt(partial(self._delegate, remote_submission, save_configs))
            if isinstance(done, Raised):
                remote_submission.fault = done.exc
            elif remote_submission.accepted_generation is None and live.ended and live.lost is None:
                remote_submission.refusal = takes_no_message(live)
            else:
                remote_submission.delegated = True
        finally:
            self._count -= 1
            self._cache.count_message(remote_submission.message, -1)
            live.notify()
            self._cache.unpin(live)

    async def _delegate(self, remote_submission: RemoteSubmission, save_configs: SaveConfigs | None) -> None:
        live = remote_submission.live
        created = remote_submission.accepted_generation is not None
        await _until_stored(live)
        try:
            if save_configs is not None and live.lost is None:
                await save_configs()
        finally:
            if created:  # it is in the store, so a daemon must work on it
                live.queue()
        if not created:
            await self._leave_with_owner(remote_submission)

    async def _leave_with_owner(self, remote_submission: RemoteSubmission) -> None:
        """Have the message published: by the daemon that works on the task, or here where none does.

        The store drops a request when the task stops. An owner may drop it, too, when it has lost the task, or has no room; so
        it is sent again now and then. An owner knows the message by its key.
        """
        live, key = remote_submission.live, remote_submission.key
        request = OwnerRequest(live.id, MESSAGE, encode_message(remote_submission.context, key))
        with live.expecting():
            while key not in live.received and not (live.ended or live.lost):
                if not live.remote or live.remote_owner == QUEUED:
                    return self._publish(remote_submission)
                asked = live.remote_owner
                if asked:
                    await self._store.send_owner_request(request)
                with anyio.move_on_after(RESEND_SECONDS):
                    while self._still(live, asked) and key not in live.received:
                        await live.wait_for_change()
        if key in live.received:
            remote_submission.accept(live.received[key])

    @staticmethod
    def _still(live: LiveTask, owner: str | None) -> bool:
        return live.remote_owner == owner and not (live.ended or live.lost)

    def _publish(self, remote_submission: RemoteSubmission) -> None:
        """No daemon works on the task. If another one publishes something now, the store decides which of them does."""
        live, context, key = remote_submission.live, remote_submission.context, remote_submission.key
        if live.remote_owner != QUEUED and (live.busy or not self._queues):
            context = msgspec.structs.replace(context, task=live.task())
            position = self._runner.submit(live, context, key=key).position
            assert position is not None, "there is a task"
            return remote_submission.accept(position)
        if len(live.waiting) >= MAX_WAITING:
            raise FailureError(Overloaded())
        remote_submission.accept(live.add_message(remote_submission.message, call_of(context, key), begun=False))
        live.queue()


async def _until_stored(live: LiveTask) -> None:
    """Wait until it is known who works on a task that was changed here."""
    while live.committed < live.generation and live.lost is None:
        await live.wait_for_change()
