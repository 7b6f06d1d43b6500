"""Seals what a client keeps for the server, so that it is believed when it comes back: the state of a call between two rounds of
questions, and which session of HTTP the client has begun.

A seal is HMAC-SHA256 with a secret key. A state holds for one operation with the same arguments, for the questions that were
asked, and for `STATE_SECONDS`; sent twice, it does no more than a call that is made twice. Where daemons share the keys of a
file, each opens what another one has sealed.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from time import time
from typing import Any, Final, final

import msgspec
from msgspec import Raw

from ...daemon.apps import AppError
from ...daemon.logs import RepeatedWarning
from ...daemon.operations.request import ClientInfo
from ...errors.decoders import decoder_for
from ...errors.exceptions import FailureError
from ...errors.failures import InvalidParams

STATE_SECONDS: Final = 600.0
"""How long a client may take to come back with an answer."""
MAX_STATE_BYTES: Final = 256 * 1024
"""The answers of earlier rounds that a state holds."""

SESSION_SECONDS: Final = 86_400.0
"""How long after its beginning another daemon goes on with a session."""
MAX_SESSION_BYTES: Final = 2048
"""The longest id of a session. Balancers take headers of 4 to 8 KiB."""

MIN_KEY: Final = 32
"""Characters of a key in a file."""
MAX_KEYS: Final = 16
_KEY_BYTES: Final = 32
_MARK_BYTES: Final = 32
_NAME_BYTES: Final = 6
"""A multiple of 3, so that Base64 has it alone in its first characters."""
_NAME_CHARACTERS: Final = 8
_ID_BYTES: Final = 32
"""Random bytes of a session's id."""


_refused: Final = {
    reason: RepeatedWarning("mcp.state_refused") for reason in ("another-key", "damaged", "another-call", "expired")
}
"""Any client can have these lines written: each is logged once a minute."""


def random_keys() -> tuple[bytes, ...]:
    """Return a key that no other process has."""
    return (os.urandom(_KEY_BYTES),)


def read_keys(path: str) -> tuple[bytes, ...]:
    """Read the keys of a file, one in each line that is not blank, and have the scrubber know them.

    Raises `AppError` for a file that can't be read, has no key, or one that is too short.
    """
    from ...errors.redaction import register  # late: few daemons have such keys

    try:
        with open(path, encoding="utf-8") as file:
            lines = [line.strip() for line in file.read(MAX_KEYS * 4096).splitlines()]
    except (OSError, ValueError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else "no UTF-8 text"
        raise AppError(f"--mcp-key: its file can't be read: {reason}") from None
    for number, line in enumerate(lines, 1):
        if line and len(line) < MIN_KEY:
            raise AppError(f"--mcp-key: line {number} has {len(line)} characters; a key has at least {MIN_KEY}")
    keys = [line for line in lines if line]
    if not 0 < len(keys) <= MAX_KEYS:
        raise AppError(f"--mcp-key: the file has {len(keys)} keys; 1 to {MAX_KEYS} are expected, one in each line")
    for key in keys:
        register(key)
    return tuple(key.encode() for key in keys)


class State(msgspec.Struct):
    """The answers so far, as JSON values by the names of their params, and the params that were asked for last."""

    values: dict[str, Any] = {}
    asked: list[str] = []


class SealedSession(msgspec.Struct, frozen=True):
    """The facts with which another daemon goes on with a session. `token` tells it from others, `expires` is in Unix seconds."""

    token: str
    revision: str
    client: ClientInfo
    expires: float


class _SealedState(msgspec.Struct):
    operation: str
    arguments: str
    expires: float
    state: State


@final
class Seal:
    """Seals with the first of the secret keys, and opens what any of them has sealed."""

    def __init__(self, keys: Sequence[bytes], names: Sequence[bytes] = ()) -> None:
        self.keys: Final = tuple(keys)
        self._names: Final = tuple(names) or tuple(_mark(key, b"name", b"")[:_NAME_BYTES] for key in keys)
        """Tell which key has sealed a text, if that has not been changed. They say nothing of the key."""

    def of(self, subject: str) -> Seal:
        """Return the seal of this caller: no other one opens what it seals."""
        text = subject.encode("utf-8", "surrogatepass")
        return Seal([hmac.digest(key, text, "sha256") for key in self.keys], self._names)

    def close_state(self, operation: str, arguments: Raw, state: State) -> str:
        """Seal the state of a call. Raises `FailureError` for answers that are too long to be sent to and fro."""
        content = msgspec.json.encode(_SealedState(operation, _digest(arguments), time() + STATE_SECONDS, state))
        if len(content) > MAX_STATE_BYTES:
            raise FailureError(InvalidParams("inputResponses", f"at most {MAX_STATE_BYTES} bytes in all", "more"))
        return self._close(b"state", content)

    def open_state(self, text: str, operation: str, arguments: Raw) -> State:
        """Open the state of a call. Raises `FailureError` for a text that was changed, has expired, or is of another call.

        The log alone says which.
        """
        content = self._open(b"state", text)
        if content is None:
            reason = "damaged" if self._is_named(text) else "another-key"
        else:
            sealed = decoder_for(_SealedState)(content)
            if (sealed.operation, sealed.arguments) != (operation, _digest(arguments)):
                reason = "another-call"
            elif sealed.expires < time():
                reason = "expired"
            else:
                return sealed.state
        hint = {"hint": "daemons behind one balancer, and after a restart, need the same --mcp-key"}
        _refused[reason](operation=operation, reason=reason, **(hint if reason == "another-key" else {}))
        raise FailureError(InvalidParams("requestState", "that of the last answer to this call", "another value"))

    def close_session(self, token: str, revision: str, client: ClientInfo) -> str | None:
        """Seal a session: the text is its id. None where that would be too long for a header."""
        content = msgspec.json.encode(SealedSession(token, revision, client, time() + SESSION_SECONDS))
        return None if 2 * len(content) > MAX_SESSION_BYTES else self._close(b"session", content)

    def open_session(self, text: str) -> SealedSession | None:
        """Open the id of a session. None for another text, and for one that has expired."""
        content = None if len(text) > MAX_SESSION_BYTES else self._open(b"session", text)
        sealed = None if content is None else decoder_for(SealedSession)(content)
        return None if sealed is None or sealed.expires < time() else sealed

    def _close(self, kind: bytes, content: bytes) -> str:
        return urlsafe_b64encode(self._names[0] + _mark(self.keys[0], kind, content) + content).decode()

    def _is_named(self, text: str) -> bool:
        """Whether a text says that it was sealed with one of the keys."""
        try:
            return urlsafe_b64decode(text[:_NAME_CHARACTERS].encode())[:_NAME_BYTES] in self._names
        except ValueError:
            return True  # no text that was sealed anywhere

    def _open(self, kind: bytes, text: str) -> bytes | None:
        """The content, which no one but a holder of the keys has written."""
        try:
            sealed = urlsafe_b64decode(text.encode())
        except ValueError:
            return None
        if urlsafe_b64encode(sealed).decode() != text:  # the decoder passes over what is no base64
            return None
        head, content = sealed[: _NAME_BYTES + _MARK_BYTES], sealed[_NAME_BYTES + _MARK_BYTES :]
        genuine = [
            hmac.compare_digest(name + _mark(key, kind, content), head)
            for name, key in zip(self._names, self.keys, strict=True)
        ]
        return content if any(genuine) else None


def new_session_id() -> str:
    """Return a random id, which is not to be guessed."""
    return secrets.token_urlsafe(_ID_BYTES)


def _mark(key: bytes, kind: bytes, content: bytes) -> bytes:
    return hmac.digest(key, kind + b"\0" + content, "sha256")


def _digest(arguments: Raw) -> str:
    """Of the values, since a client may write them anew."""
    try:
        canonical = msgspec.json.encode(msgspec.json.decode(arguments), order="deterministic")
    except (msgspec.DecodeError, RecursionError):
        canonical = bytes(arguments)
    return hashlib.sha256(canonical).hexdigest()
