"""A message as one daemon leaves it to another, which works on its task: the body of a request of the kind `MESSAGE`. Holds no
credentials: the service params of the call, which may, stay behind.
"""

from __future__ import annotations

from typing import Final

import msgspec

from ...a2a.types import CallFacts, Message, Task
from ..stores.serialization import decode_either
from ..tasks.executor import RequestContext
from ..tasks.runner import call_of


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
