"""Leaves messages to other daemons: to the one that works on the task, or to the first that has room for it. Executes nothing
itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, TypeAlias, final

import msgspec

from ..a2a.errors import takes_no_message
from ..a2a.types import MessageAdded, new_id
from ..daemon.dispatch.execution import Raised, attempt
from ..errors.exceptions import FailureError
from ..errors.failures import Overloaded
from ..lazy import anyio
from .executor import RequestContext
from .live_task import LiveTask
from .runner import MAX_WAITING, Runner, Submission
from .stores.interface import MESSAGE, QUEUED, OwnerRequest
from .stores.serialization import decode_either

# A message as one daemon leaves it to another, which works on its task: the event that the other one is to publish, as the body
# of a request of the kind `MESSAGE`. It may be left more than once, which the key of its call tells. Holds no credentials: the
# service params of the call, which may, stay behind.

_msgpack: Final = msgspec.msgpack.Encoder()
_decoders: Final = (msgspec.msgpack.Decoder(MessageAdded), msgspec.json.Decoder(MessageAdded))


def encode_message(event: MessageAdded) -> bytes:
    """Encode a message for another daemon."""
    try:
        return _msgpack.encode(event)
    except OverflowError:  # JSON numbers have no limit, MessagePack's do
        return msgspec.json.encode(event)


def decode_message(body: bytes) -> MessageAdded:
    """Raises `msgspec.DecodeError` for what another version of this program may have left."""
    return decode_either(_decoders, body)


SaveConfigs: TypeAlias = Callable[[], Awaitable[None]]

RESEND_SECONDS: Final = 5.0
"""After so long a message is sent to the owner of its task once more."""

MAX_DELEGATIONS: Final = 1024
"""Messages that may be under way to other daemons; beyond it they are refused as overload. Each is until somebody has it, also
when its sender has gone."""


@final
class Delegator:
    """One per daemon. `queues` says that this daemon executes no message itself: those that no other one works on are left in
    the store's queue."""

    def __init__(self, runner: Runner, *, queues: bool) -> None:
        self._runner = runner
        self._cache = runner.cache
        self._store = runner.cache.store
        self._count = 0
        self.queues: Final = queues

    def submit(self, live: LiveTask, context: RequestContext, save_configs: SaveConfigs | None, key: str) -> Submission:
        """Leave the message of the context to another daemon. `save_configs()` stores the push configs that came with it, before
        anybody can work on it. `key` is that of the message where it was submitted before, else empty.

        Raises the executor's refusal, and `FailureError(Overloaded)`; then nothing was published.
        """
        self._runner.check(live, context)
        if self._count >= MAX_DELEGATIONS:
            raise FailureError(Overloaded())
        key = key or new_id()
        submitted = Submission(live, key, context, self._runner.call_of(context, key), remote=True)
        if not live.generation:
            submitted.publish(begun=False)
            if save_configs is None:
                live.queue()
                submitted.delegated = True
                return submitted
        live.pins += 1
        self._count += 1
        self._cache.count_message(submitted.message, 1)
        self._runner.spawn(self._run, submitted, save_configs)
        return submitted

    async def _run(self, submitted: Submission, save_configs: SaveConfigs | None) -> None:
        live = submitted.live
        try:
            done = await attempt(partial(self._delegate, submitted, save_configs))
            if isinstance(done, Raised):
                submitted.fault = done.exc
            elif submitted.position is None and live.ended and live.lost is None:
                submitted.fault = FailureError(takes_no_message(live.id, live.status))
            else:
                submitted.delegated = True
        finally:
            self._count -= 1
            self._cache.count_message(submitted.message, -1)
            live.notify()
            self._cache.unpin(live)

    async def _delegate(self, submitted: Submission, save_configs: SaveConfigs | None) -> None:
        live = submitted.live
        created = submitted.position is not None
        while live.committed < live.generation and live.lost is None:  # then it is known who works on it
            await live.wait_for_change()
        try:
            if save_configs is not None and live.lost is None:
                await save_configs()
        finally:
            if created:  # it is in the store, so a daemon must work on it
                live.queue()
        if not created:
            await self._leave_with_owner(submitted)

    async def _leave_with_owner(self, submitted: Submission) -> None:
        """Have the message published: by the daemon that works on the task, or here where none does.

        The store drops a request when the task stops. An owner may drop it, too, when it has lost the task, or has no room; so
        it is sent again now and then. An owner knows the message by its key.
        """
        live, key = submitted.live, submitted.key
        request = OwnerRequest(live.id, MESSAGE, encode_message(MessageAdded(submitted.message, submitted.call)))
        live.expected += 1
        try:
            while key not in live.received and not (live.ended or live.lost):
                if not live.remote or live.remote_owner == QUEUED:
                    return self._publish(submitted)
                asked = live.remote_owner
                if asked:
                    await self._store.send_owner_request(request)
                with anyio.move_on_after(RESEND_SECONDS):
                    while live.remote_owner == asked and not (live.ended or live.lost or key in live.received):
                        await live.wait_for_change()
        finally:
            live.expected -= 1
        position = live.find(key, submitted.message)
        if position is not None:
            submitted.accept(position)

    def _publish(self, submitted: Submission) -> None:
        """No daemon works on the task. If another one publishes something now, the store decides which of them does."""
        live, context = submitted.live, submitted.context
        if context is not None and live.remote_owner != QUEUED and (live.busy or not self.queues):
            context = msgspec.structs.replace(context, task=live.task())
            position = self._runner.submit(live, context, key=submitted.key).position
            assert position is not None, "there is a task"
            return submitted.accept(position)
        if len(live.waiting) >= MAX_WAITING:
            raise FailureError(Overloaded())
        submitted.publish(begun=False)
        live.queue()
