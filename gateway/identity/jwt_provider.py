"""An identity provider for JSON Web Tokens (RFC 7519, with the advice of RFC 8725) that an issuer signs with public keys.

Accepted is a bearer token whose signature fits a key of the issuer's set, of a listed algorithm, for this issuer and this
audience, within its time. A token never says where its key is, and its text appears in no log.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any, Final, final

import jwt
import msgspec

from ...daemon.logs import log
from ...daemon.operations.access import CredentialsRefused
from ...daemon.operations.identity import Identity
from ...errors.decoders import convert
from ...errors.failures import WRONG_SCHEME
from .key_set import FITTING, KeySet
from .key_source import KeysUnavailable, source_of

DEFAULT_ALGORITHMS: Final = ("RS256", "ES256")
MAX_TOKEN: Final = 16 * 1024
"""Characters. Larger ones are refused unread."""
MAX_SUBJECT: Final = 1024
"""Characters of `sub`."""
LEEWAY_SECONDS: Final = 30
"""By how much the issuer's clock and ours may differ."""
FRESH_SECONDS: Final = 600.0
"""How long fetched keys are used before they are fetched again."""
USABLE_SECONDS: Final = 3600.0
"""How long they are used at most, while they can't be fetched again."""
RETRY_SECONDS: Final = 30.0
"""The shortest time between two fetches, whatever keys tokens name."""


class _Header(msgspec.Struct, frozen=True):
    alg: str
    kid: str | None = None
    crit: msgspec.Raw | None = None


class _Keys(msgspec.Struct, frozen=True):
    """Those of the last fetch that brought some, and when that was, in seconds of `clock`."""

    found: KeySet
    since: float


@final
class JwtProvider:
    """`jwks` is the address or the file of the issuer's key set. Scopes are those of `scope`, else of `scp`.

    The first fetch is made at once: `resolve` only accepts what it has keys for, and has missing ones fetched by a thread.
    Raises `ValueError` for algorithms that are not of public keys, for a file without usable keys, and for an empty text.
    """

    schemes: Sequence[str] = ("bearer",)
    bearer_format = "JWT"
    """What OpenAPI documents say of its tokens."""

    def __init__(
        self,
        issuer: str,
        audience: str,
        jwks: str,
        algorithms: Sequence[str] | None = None,
        *,
        realm: str = "discreet",
        clock: Callable[[], float] = monotonic,
    ) -> None:
        if not (issuer and audience):
            raise ValueError("neither the issuer nor the audience may be empty")
        self._algorithms = tuple(DEFAULT_ALGORITHMS if algorithms is None else algorithms)
        if not self._algorithms or not FITTING.keys() >= set(self._algorithms):
            raise ValueError(f"an algorithm must be one of {', '.join(FITTING)}")
        _check_place(jwks)
        self.realm = realm
        self._issuer = issuer
        self._audience = audience
        self._read = source_of(jwks)
        self._clock = clock
        self._lock = threading.Lock()
        self._keys: _Keys | None = None
        self._tried: float | None = None
        fault = self._fetch()
        if fault and "://" not in jwks:
            raise ValueError(f"{jwks}: {fault}")
        if fault:
            log.warning("identity.keys_failed", problem=fault)

    # -- tokens ------------------------------------------------------------------------------------------------

    def resolve(self, authorization: str) -> Identity | CredentialsRefused:
        read = self._read_token(authorization)
        if isinstance(read, CredentialsRefused):
            return read
        token, header = read
        keys = self._usable()
        key = None if keys is None else keys.find(header.alg, header.kid)
        if (key is None or not self._fresh) and self._may_fetch and self._lock.acquire(blocking=False):
            self._begin_fetch()
        if key is None:
            return CredentialsRefused("unknown key")
        return self._verify(token, header.alg, key.key)

    def _read_token(self, authorization: str) -> tuple[str, _Header] | CredentialsRefused:
        """The token and what it says of its signature, unless it can't be accepted with any key."""
        scheme, _, token = authorization.strip().partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer":
            return CredentialsRefused(WRONG_SCHEME)
        if len(token) > MAX_TOKEN:
            return CredentialsRefused("too large")
        try:
            header: _Header = convert(jwt.get_unverified_header(token), _Header)
        except (jwt.PyJWTError, msgspec.ValidationError, ValueError, RecursionError):
            return CredentialsRefused("no token")
        if header.alg not in self._algorithms or header.crit is not None:  # nothing critical is known here
            return CredentialsRefused("algorithm")
        return token, header

    def _verify(self, token: str, algorithm: str, key: Any) -> Identity | CredentialsRefused:  # a key of cryptography
        try:
            claims = jwt.decode(
                token,
                key,
                algorithms=[algorithm],
                audience=self._audience,
                issuer=self._issuer,
                leeway=LEEWAY_SECONDS,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
        except (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError) as exc:
            return CredentialsRefused(type(exc).__name__)  # its text may hold what the token says
        return _identity(claims)

    # -- keys --------------------------------------------------------------------------------------------------

    def lacks_key(self, authorization: str) -> bool:
        read = self._read_token(authorization)
        if isinstance(read, CredentialsRefused) or not (self._may_fetch or self._lock.locked()):
            return False
        keys = self._usable()
        return keys is None or keys.find(read[1].alg, read[1].kid) is None

    def refresh(self) -> None:
        """Fetch the keys, unless they have just been fetched. Waits for a fetch that is under way."""
        with self._lock:
            if self._may_fetch:
                self._refetch()

    def _begin_fetch(self) -> None:
        """Fetch the keys in a thread, which releases the lock."""
        try:
            threading.Thread(target=self._fetch_locked, name="identity-keys", daemon=True).start()
        except RuntimeError:  # no thread is left
            self._lock.release()

    def _fetch_locked(self) -> None:
        try:
            self._refetch()
        finally:
            self._lock.release()

    def _refetch(self) -> None:
        if fault := self._fetch():
            log.warning("identity.keys_failed", problem=fault)

    def _fetch(self) -> str:
        """Why there are no new keys; empty where there are."""
        self._tried = self._clock()
        try:
            self._keys = _Keys(KeySet(self._read(), self._algorithms), self._clock())
        except (KeysUnavailable, ValueError) as exc:
            return str(exc)
        return ""

    @property
    def _may_fetch(self) -> bool:
        return self._tried is None or self._clock() - self._tried >= RETRY_SECONDS

    @property
    def _fresh(self) -> bool:
        return self._keys is not None and self._clock() - self._keys.since < FRESH_SECONDS

    def _usable(self) -> KeySet | None:
        keys = self._keys
        return None if keys is None or self._clock() - keys.since >= USABLE_SECONDS else keys.found


def _check_place(jwks: str) -> None:
    from ...daemon.settings.addresses import is_key_address  # the setting's own rule, for those who come by another way

    if "://" in jwks and not is_key_address(jwks):
        raise ValueError("the keys' address must begin with https://, or be one of this machine")


def _identity(claims: dict[str, Any]) -> Identity | CredentialsRefused:
    """The caller, by claims that are verified, unless their members are of another type."""
    subject, scopes = claims["sub"], claims.get("scope", claims.get("scp", ""))
    if isinstance(scopes, str):
        scopes = scopes.split()
    if not (isinstance(subject, str) and 0 < len(subject) <= MAX_SUBJECT):
        return CredentialsRefused("claims")
    if not (isinstance(scopes, list) and all(isinstance(each, str) for each in scopes)):
        return CredentialsRefused("claims")
    return Identity(subject, frozenset(scopes))
