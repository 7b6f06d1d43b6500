"""Requests that the daemon sends to its client, and the answers to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, final

from ...errors.wire import decode_error
from ..operations.context import ClientRefused
from ..rpc import envelope
from ..rpc.envelope import Reply
from .writer import Writer

if TYPE_CHECKING:
    import anyio


@final
class _Question:
    __slots__ = ("answered", "reply")

    def __init__(self, answered: anyio.Event) -> None:
        self.answered = answered
        self.reply: Reply | None = None


@final
class ClientRequests:
    """Used on the loop's thread. Ids are integers behind `last`; they share nothing with those of the client's requests."""

    def __init__(self, outbox: Writer, last: int = 0) -> None:
        self._outbox = outbox
        self.last = last
        self._open: dict[bytes, _Question] = {}
        self.on_open: Callable[[], None] = lambda: None

    async def ask(self, method: str, params: object, timeout: float) -> bytes:
        """The client's result as JSON text.

        Raises `ClientRefused` with the client's error, and `TimeoutError` after `timeout` seconds. The client is told
        to cancel what is no longer awaited.
        """
        import anyio  # late: the first replies leave without an event loop

        self.last += 1
        question = _Question(anyio.Event())
        key = b"%d" % self.last
        message = envelope.encode_request(self.last, method, params)
        self._open[key] = question
        self._outbox.post(message)
        self._outbox.flush()
        self.on_open()
        try:
            with anyio.fail_after(timeout):
                await question.answered.wait()
        finally:
            if self._open.pop(key, None) is not None and question.reply is None:
                self._outbox.post(envelope.encode_notification("$/cancelRequest", {"id": int(key)}))
                self._outbox.flush()
        return _result(question.reply)

    def waits(self) -> bool:
        """Whether an answer is still to come."""
        return bool(self._open)

    def take(self, reply: Reply) -> bool:
        """Give a response to whoever waits for it; False when nobody does."""
        question = self._open.pop(reply.id, None)
        if question is None:
            return False
        question.reply = reply
        question.answered.set()
        return True


def _result(reply: Reply | None) -> bytes:
    if reply is not None and reply.result is not None:
        return bytes(reply.result)
    error, failure = decode_error(reply.error if reply is not None and reply.error is not None else b"")
    raise ClientRefused(error.code, error.message, failure)
