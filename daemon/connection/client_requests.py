"""Requests that the daemon sends to its client, and the answers to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import final

from ...errors.codes import SERVER_ERROR, row_of
from ...errors.failures import Unavailable
from ...errors.wire import decode_error
from ...lazy import anyio
from ..operations.context import ClientRefused
from ..rpc import envelope
from ..rpc.envelope import Reply
from .notices import Output


@final
class _Pending:
    __slots__ = ("answered", "reply")

    def __init__(self, answered: anyio.Event) -> None:
        self.answered = answered
        self.reply: Reply | None = None


@final
class ClientRequests:
    """Used on the loop's thread. Ids are integers above `last`. They have nothing to do with the ids of the client's requests."""

    def __init__(self, on_open: Callable[[], None], last: int = 0) -> None:
        self._on_open = on_open
        self.last = last
        self._open: dict[bytes, _Pending] = {}
        self._closed = False

    async def ask(
        self,
        output: Output,
        method: str,
        params: object,
        timeout: float,
        encode_cancel: Callable[[int], bytes],
        service_params: Mapping[str, str] | None = None,
    ) -> bytes:
        """The client's result as JSON text. `output` leads to it. `encode_cancel(id)` is the message that cancels the request.

        Raises `ClientRefused` with the client's error, and `TimeoutError` after `timeout` seconds. The client is told
        to cancel what is no longer awaited. Once no answer can come, it is refused with UNAVAILABLE.
        """
        if self._closed:
            raise _unanswerable()
        self.last += 1
        pending = _Pending(anyio.Event())
        key = b"%d" % self.last
        message = envelope.encode_request(self.last, method, params, service_params)
        self._open[key] = pending
        output.post(message)
        output.flush()
        self._on_open()
        try:
            with anyio.fail_after(timeout):
                await pending.answered.wait()
        finally:
            if self._open.pop(key, None) is not None and pending.reply is None:
                output.post(encode_cancel(int(key)))
                output.flush()
        if pending.reply is None:
            raise _unanswerable()
        return _result(pending.reply)

    def close(self) -> None:
        """The input has ended, so no answer can come any more: whoever waits for one is told."""
        self._closed = True
        for pending in self._open.values():
            pending.answered.set()

    def __len__(self) -> int:
        """How many answers are still to come."""
        return len(self._open)

    def take(self, reply: Reply) -> bool:
        """Take a response; False when no request waits for it."""
        pending = self._open.pop(reply.id, None)
        if pending is None:
            return False
        pending.reply = reply
        pending.answered.set()
        return True


def _unanswerable() -> ClientRefused:
    failure = Unavailable()
    return ClientRefused(SERVER_ERROR, row_of(failure).message, failure)


def _result(reply: Reply) -> bytes:
    if reply.result is not None:
        return bytes(reply.result)
    error, failure = decode_error(b"" if reply.error is None else reply.error, a2a=False)
    raise ClientRefused(error.code, error.message, failure)
