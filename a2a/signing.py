"""Signs agent cards, and verifies their signatures (A2A 1.0, section 8.4): a JWS (RFC 7515) over the card's JSON in its canonical
form (RFC 8785), without its signatures.

Section 8.4.1 keeps the required members of a card that are empty, and a2a-sdk leaves out all that is empty. A card for which this
makes a difference gets a signature over either form, and one over either is accepted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, final

import msgspec
from msgspec.structs import replace

from ..errors.decoders import DECODE_ERRORS, convert, decoder_for
from .card import AgentCard, Signature

if TYPE_CHECKING:
    from jwt import PyJWK

ALGORITHMS: Final = ("ES256", "ES384", "ES512", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "EdDSA")
"""Those of public keys (RFC 7518, RFC 8037): neither `none` nor one with a shared secret is ever taken."""
MAX_KEYS: Final = 16
MAX_KEY_BYTES: Final = 64 * 1024
"""Of a text with keys."""
MAX_SIGNATURES: Final = 16
"""Signatures of one card that are looked at."""
MIN_RSA_BITS: Final = 2048
"""RFC 7518, section 3.3."""

_OF_CURVE: Final = {"P-256": "ES256", "P-384": "ES384", "P-521": "ES512", "Ed25519": "EdDSA"}
_PRIVATE: Final = re.compile(r"-----BEGIN ([A-Z ]*PRIVATE KEY)-----.+?-----END \1-----", re.DOTALL)
_PUBLIC: Final = re.compile(r"-----BEGIN PUBLIC KEY-----.+?-----END PUBLIC KEY-----", re.DOTALL)
_THUMBPRINT: Final = {"EC": ("crv", "kty", "x", "y"), "OKP": ("crv", "kty", "x"), "RSA": ("e", "kty", "n")}
"""The members that a key's thumbprint is made of (RFC 7638, section 3.2)."""

NEEDS: Final = "PyJWT and rfc8785: pip install 'discreet[jwt]'"


class _Header(msgspec.Struct, frozen=True):
    """The protected header of a signature, as far as it is looked at. What `crit` lists would have to be understood, and nothing
    is (RFC 7515, section 4.1.11)."""

    crit: Any = None  # Any: JSON


@final
class CardSigner:
    """Signs cards with some private keys. `public_keys` is the JWK Set (RFC 7517) that verifies what they sign."""

    def __init__(self, keys: Sequence[PyJWK]) -> None:
        self._keys = tuple(keys)
        self.public_keys: Final = msgspec.json.encode({"keys": [_public_members(each) for each in keys]})
        self._signatures = lru_cache(maxsize=16)(self._sign)

    def sign(self, card: AgentCard) -> AgentCard:
        """Return the card with a signature of each key. Those that it has stay, and come first."""
        forms = canonical_forms(msgspec.to_builtins(card))
        return replace(card, signatures=(*card.signatures, *self._signatures(forms)))

    def _sign(self, forms: tuple[bytes, ...]) -> tuple[Signature, ...]:
        from jwt import api_jws  # late: an extra

        signed = []
        for key in self._keys:
            headers = {"typ": "JOSE", "kid": key.key_id}
            for form in forms:
                compact = api_jws.encode(form, key.key, key.algorithm_name, headers)
                protected, _, signature = compact.split(".")
                signed.append(Signature(protected=protected, signature=signature))
        return tuple(signed)


def read_signer(text: str) -> CardSigner:
    """Read the private keys of a PEM text: EC on a curve of NIST, RSA or Ed25519, one after the other. Each signs.

    Raises `ValueError` for a text without such keys, or with an encrypted one, and `ImportError` without the extra `jwt`.
    """
    _require()
    blocks = [found[0] for found in _PRIVATE.finditer(text)]
    if not 0 < len(blocks) <= MAX_KEYS:
        raise ValueError(f"expected a PEM text with 1 to {MAX_KEYS} private keys, found {len(blocks)}")
    return CardSigner([_key(block, private=True) for block in blocks])


@final
class CardKeys:
    """The public keys whose signatures of cards are trusted."""

    def __init__(self, text: str) -> None:
        """Read a JWK Set as JSON, or public keys as PEM.

        Raises `ValueError` for a text that has no such keys, and `ImportError` without the extra `jwt`.
        """
        _require()
        import jwt  # late: an extra

        if len(text) > MAX_KEY_BYTES:
            raise ValueError(f"expected at most {MAX_KEY_BYTES} characters of keys")
        try:
            if text.lstrip().startswith("{"):
                keys: Sequence[PyJWK] = jwt.PyJWKSet.from_json(text).keys
            else:
                keys = [_key(found[0], private=False) for found in _PUBLIC.finditer(text)]
        except (jwt.PyJWTError, ValueError, TypeError, AttributeError, RecursionError):
            raise ValueError("expected a JWK Set, or public keys in PEM form") from None
        self._keys: Final = [
            each
            for each in keys
            if each.algorithm_name in ALGORITHMS and getattr(each.key, "key_size", MIN_RSA_BITS) >= _least_bits(each)
        ]
        if not 0 < len(self._keys) <= MAX_KEYS:
            raise ValueError(
                f"expected a JWK Set, or public keys in PEM form, with 1 to {MAX_KEYS} keys that can verify"
            )

    def verify(self, card: Mapping[str, Any]) -> bool:  # Any: JSON
        """Whether a card, as the JSON object that was received, has a signature of one of the keys. Fetches nothing: the address
        of keys that a signature may name (`jku`) is ignored."""
        from jwt.utils import base64url_decode  # late: an extra

        signatures = card.get("signatures")
        try:
            forms = canonical_forms(card)
        except ValueError:
            return False
        for each in signatures[:MAX_SIGNATURES] if isinstance(signatures, list) else ():
            try:
                signature: Signature = convert(each, Signature)
                header: _Header = decoder_for(_Header)(base64url_decode(signature.protected))
            except (*DECODE_ERRORS, ValueError):
                continue
            if header.crit is None and any(self._fits(signature, form) for form in forms):
                return True
        return False

    def _fits(self, signature: Signature, form: bytes) -> bool:
        from jwt import PyJWTError, api_jws  # late: an extra

        compact = f"{signature.protected}.{_base64(form)}.{signature.signature}"
        for key in self._keys:
            try:
                api_jws.decode(compact, key.key, [key.algorithm_name])
            except (PyJWTError, ValueError, TypeError):
                continue
            return True
        return False


def canonical_forms(card: Mapping[str, Any]) -> tuple[bytes, ...]:  # Any: JSON
    """Return what the signatures of a card are made over, as the module says: one text, or two where they differ.

    Raises `ValueError` for what has no canonical form, such as an integer beyond 2**53 and JSON that is nested too deeply.
    """
    import rfc8785  # late: an extra

    plain = {name: value for name, value in card.items() if name != "signatures"}
    try:
        forms = dict.fromkeys(bytes(rfc8785.dumps(each)) for each in (plain, _without_empty(plain) or {}))
    except (rfc8785.CanonicalizationError, RecursionError):
        raise ValueError("the card has no canonical form") from None
    return tuple(forms)


def _without_empty(value: Any) -> Any:  # Any: JSON
    """The value without members and items that are null, or an empty text, list or object; None where nothing is left."""
    match value:
        case dict():
            left = {name: kept for name, each in value.items() if (kept := _without_empty(each)) is not None}
            return left or None
        case list() | tuple():
            return [kept for each in value if (kept := _without_empty(each)) is not None] or None
        case "":
            return None
        case _:
            return value


def _key(pem: str, *, private: bool) -> PyJWK:
    """A key, with its algorithm and its thumbprint as its id. Raises `ValueError` for one that can't sign or verify."""
    from cryptography.exceptions import UnsupportedAlgorithm  # late: an extra
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
    from jwt import PyJWK, PyJWTError
    from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

    try:
        if private:
            key: Any = serialization.load_pem_private_key(pem.encode(), None)
        else:
            key = serialization.load_pem_public_key(pem.encode())
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ValueError("a key can't be read, or is encrypted") from None
    members: dict[str, Any] = {}
    match key:
        case rsa.RSAPrivateKey() | rsa.RSAPublicKey() if key.key_size >= MIN_RSA_BITS:
            members = RSAAlgorithm.to_jwk(key, as_dict=True)
        case ec.EllipticCurvePrivateKey() | ec.EllipticCurvePublicKey():
            with suppress(PyJWTError):  # of a curve that JSON Web Keys do not have
                members = ECAlgorithm.to_jwk(key, as_dict=True)
        case ed25519.Ed25519PrivateKey() | ed25519.Ed25519PublicKey():
            members = OKPAlgorithm.to_jwk(key, as_dict=True)
        case _:
            pass
    algorithm = "RS256" if members.get("kty") == "RSA" else _OF_CURVE.get(members.get("crv", ""))
    if algorithm is None:
        raise ValueError(f"expected a key on P-256, P-384, P-521 or Ed25519, or of RSA with {MIN_RSA_BITS} bits")
    return PyJWK({**members, "kid": _thumbprint(members)}, algorithm)


def _least_bits(key: PyJWK) -> int:
    return MIN_RSA_BITS if key.key_type == "RSA" else 0


def _thumbprint(members: Mapping[str, Any]) -> str:  # Any: JSON
    from hashlib import sha256  # late: few agents sign

    needed = {name: members[name] for name in _THUMBPRINT[members["kty"]]}
    return _base64(sha256(msgspec.json.encode(needed)).digest())


def _public_members(key: PyJWK) -> dict[str, Any]:  # Any: JSON
    names = _THUMBPRINT[key.key_type or ""]
    members: dict[str, Any] = type(key.Algorithm).to_jwk(key.key.public_key(), as_dict=True)
    public = {name: members[name] for name in names}
    return {**public, "kid": key.key_id, "alg": key.algorithm_name, "use": "sig"}


def _base64(text: bytes) -> str:
    from jwt.utils import base64url_encode  # late: an extra

    return base64url_encode(text).decode()


def _require() -> None:
    from importlib.util import find_spec  # late: few agents sign

    if any(find_spec(name) is None for name in ("jwt", "cryptography", "rfc8785")):
        raise ImportError(f"signatures of agent cards need {NEEDS}")
