"""A message as one daemon leaves it to another: the body of a request of the kind `MESSAGE`. Holds no credentials: the service
params of the call, which may, stay behind.
"""

from __future__ import annotations

from typing import Final

import msgspec

from ...operations.access import Identity
from ..model.types import JsonObject, Message, Task
from ..stores.serialization import decode_either
from ..tasks.executor import RequestContext


class QueuedMessage(msgspec.Struct, frozen=True, omit_defaults=True):
    """`accepted` says that the message is in the task's history already. It may be left more than once before, which `key` tells.
    The other fields are those of `RequestContext`."""

    message: Message
    accepted: bool
    metadata: JsonObject | None = None
    accepted_output_modes: tuple[str, ...] | None = None
    extensions: tuple[str, ...] = ()
    identity: Identity | None = None
    key: str = ""

    def context(self, task: Task) -> RequestContext:
        """What an executor is told."""
        return RequestContext(
            task, self.message, self.metadata, self.accepted_output_modes, self.extensions, self.identity
        )


_msgpack: Final = msgspec.msgpack.Encoder()
_decoders: Final = (msgspec.msgpack.Decoder(QueuedMessage), msgspec.json.Decoder(QueuedMessage))


def encode_message(context: RequestContext, *, accepted: bool, key: str = "") -> bytes:
    """The context of a message, for another daemon."""
    assert context.message is not None, "only messages are left to others"
    queued = QueuedMessage(
        context.message,
        accepted,
        context.metadata,
        context.accepted_output_modes,
        context.extensions,
        context.identity,
        key,
    )
    try:
        return _msgpack.encode(queued)
    except OverflowError:  # JSON numbers have no limit, MessagePack's do
        return msgspec.json.encode(queued)


def decode_message(body: bytes) -> QueuedMessage:
    """Raises `msgspec.DecodeError` for what another version of this program may have left."""
    return decode_either(_decoders, body)
