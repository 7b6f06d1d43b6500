"""Keys that sign agent cards, made once for all tests of a process."""

from __future__ import annotations

from functools import cache
from typing import Any

KINDS = ["P-256", "P-384", "P-521", "Ed25519", "RSA"]


@cache
def _key(kind: str) -> Any:
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa  # late: tests without the extra skip

    match kind:
        case "Ed25519":
            return ed25519.Ed25519PrivateKey.generate()
        case "RSA":
            return rsa.generate_private_key(65537, 2048)
        case "weak RSA":
            return rsa.generate_private_key(65537, 1024)
        case _:
            curves: dict[str, Any] = {
                "P-256": ec.SECP256R1,
                "P-224": ec.SECP224R1,
                "P-384": ec.SECP384R1,
                "P-521": ec.SECP521R1,
            }
            return ec.generate_private_key(curves[kind]())


def private_pem(kind: str) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    text: bytes = _key(kind).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return text.decode()


def public_pem(kind: str) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    text: bytes = _key(kind).public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return text.decode()
