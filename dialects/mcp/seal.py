"""Seals the state of a call between two rounds of questions, since the client keeps it. Sends nothing.

A state that a client sends back is trusted only with this process's mark: HMAC-SHA256 with a key that never leaves the
process. The mark holds for one operation with the same arguments, for the questions that were asked, and for `STATE_SECONDS`.
The client alone decides who answers, so a state that is sent twice does no more than a call that is made twice.
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from time import time
from typing import Any, Final, final

import msgspec
from msgspec import Raw

from ...errors.decoders import decoder_for
from ...errors.exceptions import FailureError
from ...errors.failures import InvalidParams

STATE_SECONDS: Final = 600.0
"""How long a client may take to come back with an answer."""
MAX_STATE_BYTES: Final = 256 * 1024
"""The answers of earlier rounds that a state holds."""

_MARK_BYTES: Final = 32


class State(msgspec.Struct):
    """The answers so far, as JSON values by the names of their params, and the params that were asked for last."""

    values: dict[str, Any] = {}
    asked: list[str] = []


class _Sealed(msgspec.Struct):
    operation: str
    arguments: str
    expires: float
    state: State


@final
class Seal:
    """Seals states. `key` is secret."""

    def __init__(self, key: bytes) -> None:
        self.key = key

    def of(self, subject: str) -> Seal:
        """The one for this caller: what it seals, no other opens."""
        return Seal(hmac.digest(self.key, subject.encode("utf-8", "surrogatepass"), "sha256"))

    def close(self, operation: str, arguments: Raw, state: State) -> str:
        """The text for the client. Raises `FailureError` for answers that are too long to be sent to and fro."""
        text = msgspec.json.encode(_Sealed(operation, _digest(arguments), time() + STATE_SECONDS, state))
        if len(text) > MAX_STATE_BYTES:
            raise FailureError(InvalidParams("inputResponses", f"at most {MAX_STATE_BYTES} bytes in all", "more"))
        return urlsafe_b64encode(self._mark(text) + text).decode()

    def open(self, text: str, operation: str, arguments: Raw) -> State:
        """The state in it. Raises `FailureError` for a text that was changed, has expired, or is of another call."""
        try:
            content = urlsafe_b64decode(text.encode())
        except ValueError:
            raise _wrong_state() from None
        if urlsafe_b64encode(content).decode() != text:  # the decoder passes over what is no base64
            raise _wrong_state()
        if not hmac.compare_digest(self._mark(content[_MARK_BYTES:]), content[:_MARK_BYTES]):
            raise _wrong_state()
        sealed = decoder_for(_Sealed)(content[_MARK_BYTES:])  # written by this process alone
        if (sealed.operation, sealed.arguments) != (operation, _digest(arguments)) or sealed.expires < time():
            raise _wrong_state()
        return sealed.state

    def _mark(self, state: bytes) -> bytes:
        return hmac.digest(self.key, state, "sha256")


def _wrong_state() -> FailureError:
    return FailureError(InvalidParams("requestState", "that of the last answer to this call", "another value"))


def _digest(arguments: Raw) -> str:
    """Of the values, since a client may write them anew."""
    try:
        canonical = msgspec.json.encode(msgspec.json.decode(arguments), order="deterministic")
    except (msgspec.DecodeError, RecursionError):
        canonical = bytes(arguments)
    return hashlib.sha256(canonical).hexdigest()
