"""The public keys of a JSON Web Key Set (RFC 7517), by algorithm. Fetches nothing, verifies nothing.

Only algorithms of public keys are known here: neither `none` nor one with a shared secret can be chosen, by whomever.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final, Literal, final

import jwt
import msgspec

from ...errors.decoders import decoder_for

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
    """Raises `ValueError` for a text that is no key set, or holds no key for any of these algorithms."""

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
        """The key that a token names, or the only one that there is for a token that names none."""
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
