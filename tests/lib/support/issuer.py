"""An issuer of JSON Web Tokens: its keys, its key set, its tokens, and an HTTP server for the set."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

ISSUER = "https://issuer.example/"
AUDIENCE = "agent-1"


def rsa_key(number: int = 0, bits: int = 2048) -> rsa.RSAPrivateKey:
    return _rsa_key(number, bits)


@cache
def _rsa_key(number: int, bits: int) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, bits)


@cache
def ec_key(curve: str = "P-256") -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key({"P-256": ec.SECP256R1(), "P-384": ec.SECP384R1()}[curve])


@cache
def ed_key() -> ed25519.Ed25519PrivateKey:
    return ed25519.Ed25519PrivateKey.generate()


def public(key: Any, **members: object) -> dict[str, Any]:
    """A member of a key set."""
    match key:
        case rsa.RSAPrivateKey():
            algorithm: Any = jwt.algorithms.RSAAlgorithm
        case ec.EllipticCurvePrivateKey():
            algorithm = jwt.algorithms.ECAlgorithm
        case _:
            algorithm = jwt.algorithms.OKPAlgorithm
    return {**json.loads(algorithm.to_jwk(key.public_key())), **members}


def key_set(*keys: Mapping[str, Any]) -> bytes:
    return json.dumps({"keys": keys}).encode()


def claims(**changes: object) -> dict[str, object]:
    """Those of a token that is in order; None leaves one out."""
    now = int(time.time())
    given = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": "ada",
        "exp": now + 600,
        "iat": now,
        "scope": "read list",
        **changes,
    }
    return {name: value for name, value in given.items() if value is not None}


def token(key: Any = None, algorithm: str = "RS256", kid: object = "one", header: Any = None, **changes: object) -> str:
    return jwt.encode(
        claims(**changes),
        key or rsa_key(),
        algorithm=algorithm,
        headers={**({} if kid is None else {"kid": kid}), **(header or {})},
    )


def forged(
    header: dict[str, Any], payload: dict[str, Any] | None = None, secret: bytes = b"", sign: bool = False
) -> str:
    """A token whose header is what one likes, with a signature by a shared secret, or none."""
    parts = [_encoded(json.dumps(part).encode()) for part in (header, claims() if payload is None else payload)]
    text = ".".join(parts)
    return f"{text}.{_encoded(hmac.digest(secret, text.encode(), hashlib.sha256)) if sign else ''}"


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Served:
    """What the address answers with, and how often it was asked. While `held` is cleared it gives no answer."""

    def __init__(self, keys: bytes) -> None:
        self.keys = keys
        self.status = 200
        self.location = ""
        self.asked = 0
        self.held = threading.Event()
        self.held.set()
        self.url = ""


@contextmanager
def serving_keys(keys: bytes) -> Iterator[Served]:
    served = Served(keys)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            served.asked += 1
            served.held.wait(30)
            self.send_response(served.status)
            if served.location:
                self.send_header("location", served.location)
            self.send_header("content-length", str(len(served.keys)))
            self.end_headers()
            self.wfile.write(served.keys)

        def log_message(self, format: str, *args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    served.url = f"http://127.0.0.1:{server.server_address[1]}/keys"
    try:
        yield served
    finally:
        served.held.set()
        server.shutdown()
        thread.join()
        server.server_close()


def written(path: Path, *keys: Mapping[str, Any]) -> str:
    """The path of a file with these keys."""
    path.write_bytes(key_set(*keys))
    return str(path)
