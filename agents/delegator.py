"""Leaves messages to other daemons: to the one that works on the task, or to the first that has room for it. Executes nothing
itself."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, TypeAlias, final

import msgspec

from ..a2a.errors import takes_no_message
from ..a2a.types import JsonObject, MessageAdded, new_id
from ..daemon.dispatch.execution import Raised, attempt
from ..errors.decoders import DECODE_ERRORS, convert
from ..errors.exceptions import FailureError
from ..errors.failures import DomainFailure, Failure, Internal, Overloaded
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


def encode_refusal(failure: Failure) -> JsonObject | None:
    """Return the fields of a declared error as JSON, for the daemon that has sent the message; None for another failure."""
    if not isinstance(failure, DomainFailure):
        return None
    details = None if failure.details is None else msgspec.json.decode(failure.details)
    return msgspec.structs.asdict(failure) | {"details": details}


def decode_refusal(error: JsonObject | None) -> Failure:
    """Return the failure that another daemon has told."""
    if error is None:
        return Internal()
    details = error.get("details")
    try:
        failure: DomainFailure = convert(error | {"details": None}, DomainFailure)
    except DECODE_ERRORS:  # another version of this program has left it
        return Internal()
    if details is None:
        return failure
    return msgspec.structs.replace(failure, details=msgspec.Raw(msgspec.json.encode(details)))


SaveConfigs: TypeAlias = Callable[[], Awaitable[None]]

RESEND_SECONDS: Final = 5.0
"""After so long a message is sent to the owner of its task once more."""

MAX_DELEGATIONS: Final = 1024
"""Messages that may be under way to other daemons; beyond it they are refused as overload. Each is until somebody has it, also
when its sender has gone."""


class _Delivery(msgspec.Struct, eq=False):
    """A message on its way to another daemon. `asked` is the owner of the task that was sent it last."""

    submitted: Submission
    save_configs: SaveConfigs | None
    asked: str = ""


@final
class Delegator:
    """One per daemon. `queues` says that this daemon executes no message itself: those that no other one works on are left in
    the store's queue. Messages of one task are left in the order in which they were submitted."""

    def __init__(self, runner: Runner, *, queues: bool) -> None:
        self._runner = runner
        self._cache = runner.cache
        self._store = runner.cache.store
        self._count = 0
        self._deliveries: dict[LiveTask, deque[_Delivery]] = {}
        self.queues: Final = queues

    def has_messages(self, live: LiveTask) -> bool:
        """Whether messages of this task are on their way: another one must not overtake them."""
        return live in self._deliveries

    def submit(self, live: LiveTask, context: RequestContext, save_configs: SaveConfigs | None, key: str) -> Submission:
        """Leave the message of the context to another daemon. `save_configs()` stores the push configs that came with it, before
        anybody can work on it. `key` is that of the message where it was submitted before, else empty.

        Raises the executor's refusal, and `FailureError(Overloaded)`; then nothing was published.
        """
        self._runner.check(live, context)
        deliveries = self._deliveries.get(live) or deque()
        if self._count >= MAX_DELEGATIONS or len(live.waiting) + len(deliveries) >= MAX_WAITING:
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
        deliveries.append(_Delivery(submitted, save_configs))
        if live not in self._deliveries:
            self._deliveries[live] = deliveries
            self._runner.spawn(self._deliver, live, deliveries)
        else:
            live.notify()
        return submitted

    async def _deliver(self, live: LiveTask, deliveries: deque[_Delivery]) -> None:
        """Have the messages published: by the daemon that works on the task, or here where none does. That one is sent each when
        it has the one before, as it may drop any of them.

        The store drops a request when the task stops. An owner may drop it, too, when it has lost the task, or has no room; so
        it is sent again now and then. An owner knows the message by its key.
        """
        live.expected += 1
        known = False
        try:
            while deliveries:
                while not known and live.committed < live.generation and live.lost is None:
                    await live.wait_for_change()
                known, first = True, deliveries[0]  # who works on it; then those that are published here are one change
                done = await attempt(partial(self._advance, first))
                if done is False:
                    with anyio.move_on_after(RESEND_SECONDS) as scope:
                        await self._wait_for_news(first)
                    if scope.cancelled_caught:
                        first.asked = ""
                    known = False
                    continue
                first.submitted.fault = done.exc if isinstance(done, Raised) else None
                self._settle(deliveries.popleft().submitted)
        finally:
            live.expected -= 1
            live.refused.clear()
            del self._deliveries[live]
            for each in deliveries:
                each.submitted.fault = FailureError(Internal())
                self._settle(each.submitted)

    @staticmethod
    async def _wait_for_news(delivery: _Delivery) -> None:
        live, key = delivery.submitted.live, delivery.submitted.key
        while delivery.asked == live.remote_owner and not (
            live.ended or live.lost or key in live.received or key in live.refused
        ):
            await live.wait_for_change()

    def _settle(self, submitted: Submission) -> None:
        """It need not be left to another daemon any more."""
        self._count -= 1
        self._cache.count_message(submitted.message, -1)
        submitted.delegated = submitted.fault is None
        submitted.live.notify()
        self._cache.unpin(submitted.live)

    async def _advance(self, delivery: _Delivery) -> bool:
        """Do what can be done for a message now. Whether there is no more to do: it is a part of the task, or never will be.

        Raises why it can't be taken.
        """
        submitted, live = delivery.submitted, delivery.submitted.live
        created = submitted.position is not None
        try:
            if delivery.save_configs is not None and live.lost is None:
                save_configs, delivery.save_configs = delivery.save_configs, None
                await save_configs()
        finally:
            if created:  # it is in the store, so a daemon must work on it
                live.queue()
        if created or live.lost is not None:
            return True
        position = live.find(submitted.key, submitted.message)
        if position is not None:
            submitted.accept(position)
            return True
        if submitted.key in live.refused:
            raise FailureError(decode_refusal(live.refused.pop(submitted.key)))
        if live.ended:
            raise FailureError(takes_no_message(live.id, live.status))
        if not live.remote or live.remote_owner == QUEUED:
            self._publish(submitted)
            return True
        owner = live.remote_owner or ""
        if delivery.asked != owner:
            delivery.asked = owner
            message = MessageAdded(submitted.message, submitted.call)
            await self._store.send_owner_request(OwnerRequest(live.id, MESSAGE, encode_message(message)))
        return False

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
