"""An identity provider for JSON Web Tokens (RFC 7519, with the advice of RFC 8725) that an issuer signs with public keys.

Accepted is a bearer token whose signature fits a key of the issuer's set, of a listed algorithm, for this issuer and this
audience, within its time. A token never says where its key is, and its text appears in no log.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Hashable, Sequence
from time import monotonic
from typing import Any, Final, Literal, final

import jwt
import msgspec

from ..daemon.logs import log
from ..daemon.operations.access import CredentialsRefused
from ..daemon.operations.identity import Identity
from ..errors.decoders import convert, decoder_for
from ..errors.failures import WRONG_SCHEME
from .issuer_http import NotAnswered, source_of

# The public keys of a JSON Web Key Set (RFC 7517), by algorithm. Fetches nothing, verifies nothing.
#
# Only algorithms of public keys are known here: neither `none` nor one with a shared secret can be chosen, by whomever.


FITTING: Final = {
    "RS256": "RSA", "RS384": "RSA", "RS512": "RSA", "PS256": "RSA", "PS384": "RSA", "PS512": "RSA",
    "ES256": "P-256", "ES384": "P-384", "ES512": "P-521", "EdDSA": "Ed25519",
}  # fmt: skip
"""The algorithms, and the key that each needs: its type, or its curve where there are several of one type."""

MIN_RSA_BITS: Final = 2048
"""RFC 7518, sections 3.3 and 3.5."""
MAX_KEYS: Final = 64
"""Of one set. Issuers have two or three."""


class _JsonWebKey(msgspec.Struct, frozen=True):
    """The members that decide whether a key may be used. The key itself is read by PyJWT."""

    kty: Literal["RSA", "EC", "OKP"]
    crv: str = "RSA"
    kid: str = ""
    use: str = "sig"
    alg: str | None = None
    key_ops: tuple[str, ...] = ("verify",)
    d: Any = None  # only private keys have it


class _Members(msgspec.Struct, frozen=True):
    keys: list[msgspec.Raw]


class PublicKey(msgspec.Struct, frozen=True):
    """A key that may verify signatures. `fits` is as in `FITTING`; `algorithm` is the one that it is for, if it says so."""

    kid: str
    fits: str
    algorithm: str | None
    key: Any  # of cryptography


@final
class KeySet:
    """The public keys of an issuer. Raises `ValueError` for a text that is no key set, or has no key for these algorithms."""

    def __init__(self, text: bytes, algorithms: Collection[str]) -> None:
        try:
            members = decoder_for(_Members)(text).keys
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise ValueError("no JSON Web Key Set") from None
        wanted = {FITTING[algorithm] for algorithm in algorithms}
        found = (_public_key(bytes(member)) for member in members[:MAX_KEYS])
        self._keys = [key for key in found if key is not None and key.fits in wanted]
        if not self._keys:
            raise ValueError("no key for the algorithms in use")

    def find(self, algorithm: str, kid: str | None) -> PublicKey | None:
        """Return the key that a token names, or the only key for a token that names none."""
        fitting = [
            key
            for key in self._keys
            if key.fits == FITTING[algorithm] and key.algorithm in (None, algorithm) and kid in (None, key.kid)
        ]
        return fitting[0] if len(fitting) == 1 else None


def _public_key(text: bytes) -> PublicKey | None:
    """The key; None for one of another kind or use, a private, a weak or a broken one."""
    try:
        declared = decoder_for(_JsonWebKey)(text)
        if declared.use != "sig" or "verify" not in declared.key_ops or declared.d is not None:
            return None
        fits = declared.crv if declared.kty != "RSA" else "RSA"
        algorithm = next((name for name, needed in FITTING.items() if needed == fits), None)
        if algorithm is None:
            return None
        key = jwt.PyJWK.from_json(text.decode(), algorithm).key
    except (msgspec.DecodeError, jwt.PyJWTError, ValueError, KeyError, TypeError):
        return None
    if fits == "RSA" and key.key_size < MIN_RSA_BITS:
        return None
    return PublicKey(declared.kid, fits, declared.alg, key)


DEFAULT_ALGORITHMS: Final = ("RS256", "ES256")
MAX_TOKEN: Final = 16 * 1024
"""Characters. Larger ones are refused unread."""
MAX_SUBJECT: Final = 1024
"""Characters of `sub`."""
LEEWAY_SECONDS: Final = 30
"""By how much the issuer's clock and ours may differ."""
_ACCESS_TOKENS: Final = (None, "jwt", "at+jwt")
"""The types in headers of access tokens (RFC 9068, section 2.1). Others are something else with a signature of the issuer: an
assertion of identity, a logout (RFC 8725, section 3.11)."""
FRESH_SECONDS: Final = 600.0
"""How long fetched keys are used before they are fetched again."""
USABLE_SECONDS: Final = 3600.0
"""How long they are used at most, while they can't be fetched again."""
RETRY_SECONDS: Final = 30.0
"""The shortest time between two fetches, whatever keys tokens name."""


class _Header(msgspec.Struct, frozen=True):
    alg: str
    kid: str | None = None
    typ: str | None = None
    crit: msgspec.Raw | None = None


class _Keys(msgspec.Struct, frozen=True):
    """The keys of the last fetch that brought some, and its time, in seconds of `clock`."""

    found: KeySet
    since: float


@final
class JwtProvider:
    """Identifies callers by JSON Web Tokens. `jwks` is the address or the file of the issuer's key set.

    Scopes are those of `scope`, else of `scp`. The keys are fetched at once. `resolve` accepts only tokens of known keys; a
    thread fetches missing ones. Raises `ValueError` for algorithms that are not of public keys, for a file without usable keys,
    and for an empty text.
    """

    schemes: Sequence[str] = ("bearer",)
    bearer_format = "JWT"
    """The form of its tokens in OpenAPI documents."""

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
        from ..daemon.settings.option import is_key_address  # the setting's own rule, for those who come by another way

        if "://" in jwks and not is_key_address(jwks):
            raise ValueError("the keys' address must begin with https://, or be one of this machine")
        self.realm = realm
        self.issuer = issuer
        self.audience = audience
        self._read = source_of(jwks)
        self._clock = clock
        self._lock = threading.Lock()
        self._keys: _Keys | None = None
        self._tried: float | None = None
        if "://" in jwks:
            self._fetch()
            return
        try:
            self._load()
        except (NotAnswered, ValueError) as exc:
            raise ValueError(f"{jwks}: {exc}") from None

    # -- tokens ------------------------------------------------------------------------------------------------

    def resolve(self, authorization: str) -> Identity | CredentialsRefused:
        read = self._read_token(authorization)
        if isinstance(read, CredentialsRefused):
            return read
        token, header = read
        keys = self._usable()
        key = None if keys is None else keys.find(header.alg, header.kid)
        fresh = self._keys is not None and self._clock() - self._keys.since < FRESH_SECONDS
        if (key is None or not fresh) and self._may_fetch and self._lock.acquire(blocking=False):
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
        if header.typ is not None and header.typ.lower().removeprefix("application/") not in _ACCESS_TOKENS:
            return CredentialsRefused("type")
        return token, header

    def _verify(self, token: str, algorithm: str, key: Any) -> Identity | CredentialsRefused:  # a key of cryptography
        try:
            claims = jwt.decode(
                token,
                key,
                algorithms=[algorithm],
                audience=self.audience,
                issuer=self.issuer,
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

    def refresh(self, lacking: Hashable = True) -> None:
        """Fetch the keys, unless they have just been fetched. Waits for a fetch that is under way."""
        with self._lock:
            if self._may_fetch:
                self._fetch()

    def _begin_fetch(self) -> None:

        def fetch() -> None:
            try:
                self._fetch()
            finally:
                self._lock.release()

        try:
            threading.Thread(target=fetch, name="identity-keys", daemon=True).start()
        except RuntimeError:  # no thread is left
            self._lock.release()

    def _fetch(self) -> None:
        try:
            self._load()
        except (NotAnswered, ValueError) as exc:
            log.warning("identity.keys_failed", problem=str(exc))

    def _load(self) -> None:
        self._tried = self._clock()
        self._keys = _Keys(KeySet(self._read(), self._algorithms), self._clock())

    @property
    def _may_fetch(self) -> bool:
        return self._tried is None or self._clock() - self._tried >= RETRY_SECONDS

    def _usable(self) -> KeySet | None:
        keys = self._keys
        return None if keys is None or self._clock() - keys.since >= USABLE_SECONDS else keys.found


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
