"""An identity provider for bearer tokens that the authorization server is asked about (RFC 7662).

Accepted is a token that is active, of this issuer where the answer names one, for this audience, and within its time. An answer
is kept for some seconds, under a digest of the token. While the server does not answer, no token is accepted. No token is logged.
"""

from __future__ import annotations

import hashlib
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Hashable, Sequence
from time import monotonic
from typing import Final, final
from urllib.parse import quote_plus

import msgspec

from ..daemon.logs import log
from ..daemon.operations.access import CredentialsRefused, CredentialsUnchecked, Resolved
from ..daemon.operations.identity import Identity
from ..errors.decoders import DECODE_ERRORS, decoder_for
from ..errors.failures import WRONG_SCHEME
from ..errors.redaction import register
from .issuer_http import NotAnswered, post_form

MAX_TOKEN: Final = 16 * 1024
"""Characters. Larger ones are refused unasked."""
MAX_NAME: Final = 1024
"""Characters of the subject or the client."""
MAX_SCOPE: Final = 8 * 1024
"""Characters of `scope`."""
MAX_KEPT: Final = 1024
"""Answers of active tokens that are kept, and as many of others: these must not displace those. At most 20 MiB in all."""
KEPT_SECONDS: Final = 30.0
"""How long a token may be accepted after the server has revoked it."""
REFUSED_SECONDS: Final = 5.0
"""How long a token is refused that may be active later: servers tell each other of new ones."""
LEEWAY_SECONDS: Final = 30
"""By how much the server's clock and ours may differ."""
PAUSE_SECONDS: Final = 1.0
"""How long the server is left alone after it has failed to answer."""
_BAD_REQUEST: Final = 400
MAX_THREADS: Final = 8
"""Questions under way at a time that no request by HTTP waits for."""


class _Answer(msgspec.Struct, frozen=True):
    """Section 2.2 of the RFC. Some servers write the scopes as an array."""

    active: bool
    scope: str | list[str] | None = None
    client_id: str | None = None
    exp: float | None = None
    nbf: float | None = None
    sub: str | None = None
    aud: str | list[str] | None = None
    iss: str | None = None


class _Kept(msgspec.Struct, frozen=True):
    """`until` is in seconds of `clock`."""

    found: Identity | CredentialsRefused
    until: float


@final
class IntrospectionProvider:
    """Identifies callers by what the server at `url` says of their tokens. `client` is `ID:SECRET`, as which it is asked.

    The subject is `sub`, else `client:` and `client_id`, for tokens that a client has got for itself. Raises `ValueError` for an
    address that is neither `https://` nor of this machine, and for texts that are empty or none.
    """

    schemes: Sequence[str] = ("bearer",)

    def __init__(
        self,
        issuer: str,
        audience: str,
        url: str,
        client: str,
        *,
        realm: str = "discreet",
        clock: Callable[[], float] = monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        from ..daemon.settings.option import is_key_address  # the setting's own rule, for those who come by another way

        if not (issuer and audience):
            raise ValueError("neither the issuer nor the audience may be empty")
        if not is_key_address(url):
            raise ValueError("the server's address must begin with https://, or be one of this machine")
        name, colon, secret = client.strip().partition(":")
        if not (name and colon and secret and client.strip().isprintable()):
            raise ValueError("the client must be ID:SECRET, on one line")
        basic = b64encode(f"{quote_plus(name)}:{quote_plus(secret)}".encode()).decode()  # RFC 6749, section 2.3.1
        register(secret)
        register(basic)
        self.realm = realm
        self.issuer = issuer
        self.audience = audience
        self._url = url
        self._headers = {"authorization": f"Basic {basic}"}
        self._clock = clock
        self._now = now
        self._accepted: dict[bytes, _Kept] = {}
        self._refused: dict[bytes, _Kept] = {}
        self._asking: set[bytes] = set()
        self._lock = threading.Lock()
        self._rests_until = 0.0

    def resolve(self, authorization: str) -> Resolved:
        token = self._token(authorization)
        if isinstance(token, CredentialsRefused):
            return token
        kept = self._kept(token)
        if kept is None:
            self._ask_in_thread(token)
            return CredentialsUnchecked(int(PAUSE_SECONDS * 1000))
        return kept.found

    def lacks_key(self, authorization: str) -> Hashable:
        token = self._token(authorization)
        if isinstance(token, CredentialsRefused) or self._rests or self._kept(token) is not None:
            return None
        return token

    def refresh(self, lacking: Hashable, /) -> None:
        """Ask for this token."""
        if isinstance(lacking, str) and not self._rests:
            self._ask(lacking)

    # -- tokens ------------------------------------------------------------------------------------------------

    @staticmethod
    def _token(authorization: str) -> str | CredentialsRefused:
        scheme, _, token = authorization.strip().partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer":
            return CredentialsRefused(WRONG_SCHEME)
        if not token or not token.isascii() or not token.isprintable() or " " in token:
            return CredentialsRefused("no token")
        return token if len(token) <= MAX_TOKEN else CredentialsRefused("too large")

    def _kept(self, token: str) -> _Kept | None:
        digest = _digest(token)
        kept = self._accepted.get(digest) or self._refused.get(digest)
        return kept if kept is not None and self._clock() < kept.until else None

    # -- questions ---------------------------------------------------------------------------------------------

    @property
    def _rests(self) -> bool:
        return self._clock() < self._rests_until

    def _ask_in_thread(self, token: str) -> None:
        """Ask where no request waits for it: over stdio, and by HTTP after a wait was in vain."""
        digest = _digest(token)
        with self._lock:
            if self._rests or digest in self._asking or len(self._asking) >= MAX_THREADS:
                return
            self._asking.add(digest)

        def ask() -> None:
            try:
                self._ask(token)
            finally:
                with self._lock:
                    self._asking.discard(digest)

        try:
            threading.Thread(target=ask, name="introspection", daemon=True).start()
        except RuntimeError:  # no thread is left
            with self._lock:
                self._asking.discard(digest)

    def _ask(self, token: str) -> None:
        asked = self._clock()
        try:
            text = post_form(self._url, {"token": token, "token_type_hint": "access_token"}, self._headers)
            answer: _Answer = decoder_for(_Answer)(text)
        except NotAnswered as exc:
            if exc.status == _BAD_REQUEST:  # the token is at fault: it must not keep others from being asked about
                self._keep(token, _Kept(CredentialsRefused("bad request"), asked + REFUSED_SECONDS))
            else:
                self._rest(str(exc))
        except DECODE_ERRORS:
            self._rest("the answer is not one of RFC 7662")
        else:
            found = self._read(answer)
            left = KEPT_SECONDS if answer.exp is None else min(KEPT_SECONDS, answer.exp + LEEWAY_SECONDS - self._now())
            self._keep(token, _Kept(found, asked + (left if isinstance(found, Identity) else REFUSED_SECONDS)))

    def _rest(self, problem: str) -> None:
        self._rests_until = self._clock() + PAUSE_SECONDS
        log.warning("identity.introspection_failed", problem=problem)

    def _keep(self, token: str, kept: _Kept) -> None:
        digest = _digest(token)
        with self._lock:
            for answers in (self._accepted, self._refused):
                answers.pop(digest, None)
            answers = self._accepted if isinstance(kept.found, Identity) else self._refused
            if len(answers) >= MAX_KEPT:
                del answers[next(iter(answers))]
            answers[digest] = kept

    def _read(self, answer: _Answer) -> Identity | CredentialsRefused:
        if not answer.active:
            return CredentialsRefused("inactive")
        if answer.iss not in (None, self.issuer):
            return CredentialsRefused("issuer")
        if self.audience not in ([answer.aud] if isinstance(answer.aud, str) else answer.aud or ()):
            return CredentialsRefused("audience")
        now = self._now()
        if answer.exp is not None and answer.exp + LEEWAY_SECONDS <= now:
            return CredentialsRefused("expired")
        if answer.nbf is not None and answer.nbf - LEEWAY_SECONDS > now:
            return CredentialsRefused("too early")
        subject = answer.sub or (answer.client_id and f"client:{answer.client_id}")
        scope = answer.scope if isinstance(answer.scope, str) else " ".join(answer.scope or ())
        if not subject or len(subject) > MAX_NAME or len(scope) > MAX_SCOPE:
            return CredentialsRefused("claims")
        return Identity(subject, frozenset(scope.split()))


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
