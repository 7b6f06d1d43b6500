"""JSON Web Tokens over HTTP: what the settings say, and a request that waits for the key of its token."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jwt")
pytest.importorskip("cryptography")

from cryptography.hazmat.primitives import serialization

from discreet import CredentialsRefused, Identity
from discreet.daemon.operations.service import DeclarationError
from discreet.gateway import issuer_http, jwt_provider
from discreet.gateway.issuer_http import MAX_BYTES
from discreet.gateway.jwt_provider import MAX_SUBJECT, MAX_TOKEN, RETRY_SECONDS, USABLE_SECONDS, JwtProvider
from discreet.http import asgi
from support.issuer import (
    AUDIENCE,
    ISSUER,
    claims,
    ec_key,
    ed_key,
    forged,
    key_set,
    public,
    rsa_key,
    serving_keys,
    token,
    written,
)
from support.waits import wait_until

from .conftest import Serve, agent_of
from .test_jsonrpc import V1, hello

pytestmark = pytest.mark.anyio


def settings(keys: str, **more: Any) -> dict[str, Any]:
    return {"jwt_issuer": ISSUER, "jwt_audience": AUDIENCE, "jwt_jwks": keys, **more}


async def test_the_settings_name_the_issuer_the_audience_and_the_keys(serve: Serve, tmp_path: Path) -> None:
    keys = written(tmp_path / "keys.json", public(rsa_key(), kid="one"))
    async with serve(**settings(keys)) as client:
        async with client.stream("SendMessage", hello(), **V1, authorization=f"Bearer {token()}") as reply:
            task = (await reply.json())["result"]["task"]["id"]
        for refused in (token(aud="other"), token(rsa_key(1)), "x"):
            async with client.stream("SendMessage", hello(), **V1, authorization=f"Bearer {refused}") as reply:
                where = 'resource_metadata="http://localhost/.well-known/oauth-protected-resource"'
                wanted = f'Bearer realm="discreet", error="invalid_token", {where}'
                assert (reply.status, reply.headers["www-authenticate"]) == (401, wanted)
        eve = f"Bearer {token(sub='eve')}"
        assert (await client.call("GetTask", {"id": task}, **V1, authorization=eve))["error"]["code"] == -32001


@pytest.mark.parametrize(
    "given",
    [
        {"jwt_audience": None}, {"jwt_issuer": None}, {"jwt_jwks": None}, {"jwt_algorithms": ["none"]}, {"jwt_jwks": __file__},
        {"jwt_jwks": "http://issuer.example/keys"}, {"jwt_jwks": "/nowhere"},
        {"tokens": [f"ada:{'0' * 64}"]}, {"jwt_issuer": "two words"}, {"jwt_audience": ""}, {"auth_introspect": "https://issuer.example/introspect"},
    ],
)  # fmt: skip
def test_settings_that_are_incomplete_or_unsafe_are_refused(tmp_path: Path, given: dict[str, Any]) -> None:
    keys = written(tmp_path / "keys.json", public(rsa_key(), kid="one"))
    with pytest.raises(DeclarationError) as refused:
        asgi(agent_of(), isolated=True, **settings(keys, **given))
    assert "\n" not in str(refused.value)
    assert ("introspect" in str(refused.value)) == (given == {"jwt_jwks": None} or "auth_introspect" in given)


# -- Which JSON Web Tokens are accepted, with real keys; and where the keys come from, and when --


ADA = Identity("ada", frozenset({"read", "list"}))
ALL = ["RS256", "RS512", "PS256", "ES256", "ES384", "EdDSA"]


def provider(tmp_path: Path, *keys: Any, algorithms: list[str] | None = None) -> JwtProvider:
    path = written(tmp_path / "keys.json", *(keys or (public(rsa_key(), kid="one"),)))
    return JwtProvider(ISSUER, AUDIENCE, path, algorithms)


def now(seconds: float) -> int:
    return int(time.time() + seconds)


def pem() -> bytes:
    return (
        rsa_key().public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )


@pytest.mark.parametrize(
    ("changes", "identity"),
    [
        ({}, ADA),
        ({"aud": ["other", AUDIENCE]}, ADA),
        ({"nbf": now(-10), "exp": now(86_400)}, ADA),  # of when tests are found, which may be long before they run
        ({"nbf": now(5)}, ADA),
        ({"iat": None, "jti": "1", "nonce": "x"}, ADA),
        ({"scope": None, "scp": ["read", "list"]}, ADA),
        ({"scope": None, "scp": "read list"}, ADA),
        ({"scope": None}, Identity("ada", frozenset())),
        ({"scope": "", "scp": "admin"}, Identity("ada", frozenset())),
        ({"sub": "x" * MAX_SUBJECT}, Identity("x" * MAX_SUBJECT, frozenset({"read", "list"}))),
    ],
)
def test_a_token_in_order_names_its_caller_and_the_scopes(
    tmp_path: Path, changes: dict[str, Any], identity: Identity
) -> None:
    given = provider(tmp_path)
    assert given.resolve(f"Bearer {token(**changes)}") == identity
    assert given.resolve(f"  bearer  {token(**changes, header={'typ': 'at+JWT'})} ") == identity


@pytest.mark.parametrize(
    "changes",
    [
        {"iss": "https://other.example/"}, {"iss": ISSUER.rstrip("/")}, {"iss": None}, {"iss": [ISSUER]},
        {"aud": "agent-2"}, {"aud": None}, {"aud": []}, {"aud": ["agent"]}, {"aud": AUDIENCE.upper()},
        {"exp": now(-300)}, {"exp": None}, {"exp": "soon"},
        {"nbf": now(3000)}, {"nbf": "later"}, {"iat": now(3000)},
        {"sub": None}, {"sub": ""}, {"sub": 7}, {"sub": "x" * (MAX_SUBJECT + 1)},
        {"scope": 7}, {"scope": {"read": True}}, {"scope": None, "scp": ["read", 7]},
    ],
)  # fmt: skip
def test_a_token_with_a_wrong_claim_is_not_accepted(tmp_path: Path, changes: dict[str, Any]) -> None:
    if changes.get("iss", ISSUER) not in (ISSUER, None) or isinstance(changes.get("sub"), int):
        text = _signed_as_is(changes)
    else:
        text = token(**changes)
    assert isinstance(provider(tmp_path).resolve(f"Bearer {text}"), CredentialsRefused)
    assert provider(tmp_path).resolve(f"Bearer {token()}") == ADA


def _signed_as_is(changes: dict[str, Any]) -> str:
    """PyJWT refuses to write some claims; a hostile issuer doesn't."""
    import json

    import jwt

    payload = json.dumps(claims(**changes)).encode()
    return jwt.PyJWS().encode(payload, rsa_key(), algorithm="RS256", headers={"kid": "one", "typ": "JWT"})


def _other_header(**members: Any) -> str:
    """A token in order whose header was changed after it was signed."""
    head, _, rest = forged({"alg": "RS256", "kid": "one", **members}).partition(".")
    return ".".join([head, *token().split(".")[1:]]) if rest else ""


ATTACKS: dict[str, Callable[[], str]] = {
    "no signature": lambda: forged({"alg": "none", "kid": "one"}),
    "no signature, of an algorithm": lambda: forged({"alg": "RS256", "kid": "one"}),
    "the public key as a shared secret": lambda: forged({"alg": "HS256", "kid": "one"}, secret=pem(), sign=True),
    "an empty shared secret": lambda: forged({"alg": "HS256", "kid": "one"}, sign=True),
    "signed by another key": lambda: token(rsa_key(1)),
    "another algorithm of the same key": lambda: token(algorithm="PS256"),
    "an algorithm that is not listed": lambda: token(algorithm="RS512"),
    "an algorithm of another key": lambda: token(ec_key(), "ES256"),
    "a kid that is a path": lambda: token(kid="../../../../dev/null"),
    "a kid that is no text": lambda: forged({"alg": "RS256", "kid": 1}),
    "a kid that is an address": lambda: token(kid="http://127.0.0.1:9/keys"),
    "its own key": lambda: token(rsa_key(1), header={"jwk": public(rsa_key(1))}),
    "its own key's address": lambda: token(rsa_key(1), header={"jku": "http://127.0.0.1:9/keys"}),
    "something critical": lambda: token(header={"crit": ["exp"]}),
    "a changed header": lambda: _other_header(typ="at+jwt"),
    "a changed claim": lambda: ".".join(
        [token().split(".")[0], forged({}).split(".")[1], token(sub="eve").split(".")[2]]
    ),
    "an assertion of identity": lambda: token(header={"typ": "oauth-id-jag+jwt"}),
    "a logout": lambda: token(header={"typ": "application/logout+JWT"}),
    "no alg": lambda: forged({"kid": "one"}),
    "an alg that is a list": lambda: forged({"alg": ["RS256"], "kid": "one"}),
    "one part": lambda: "x",
    "nothing": lambda: "",
    "two tokens": lambda: f"{token()} {token()}",
    "no base64": lambda: "ü.ü.ü",
    "a header that is no JSON": lambda: "e30x.e30.x",
    "a deep header": lambda: forged({"alg": "RS256", "x": _deep(400)}),
    "a huge token": lambda: token(padding="x" * MAX_TOKEN),
}


def _deep(levels: int) -> Any:
    value: Any = 0
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("attack", ATTACKS)
def test_what_no_issuer_has_signed_is_not_accepted(tmp_path: Path, attack: str) -> None:
    given = provider(tmp_path)
    assert isinstance(given.resolve(f"Bearer {ATTACKS[attack]()}"), CredentialsRefused)
    assert given.resolve(f"Bearer {token()}") == ADA


@pytest.mark.parametrize("scheme", ["", "Basic", "ApiKey", "DPoP"])
def test_only_bearer_tokens_are_accepted(tmp_path: Path, scheme: str) -> None:
    assert isinstance(provider(tmp_path).resolve(f"{scheme} {token()}"), CredentialsRefused)


@pytest.mark.parametrize(
    ("key", "algorithm"),
    [
        (rsa_key, "RS512"), (rsa_key, "PS256"), (ec_key, "ES256"), (lambda: ec_key("P-384"), "ES384"), (ed_key, "EdDSA"),
    ],
)  # fmt: skip
def test_other_algorithms_of_public_keys_can_be_listed(tmp_path: Path, key: Callable[[], Any], algorithm: str) -> None:
    given = provider(
        tmp_path,
        *(public(each, kid="one") for each in (rsa_key(), ec_key(), ec_key("P-384"), ed_key())),
        algorithms=ALL,
    )
    assert given.resolve(f"Bearer {token(key(), algorithm)}") == ADA
    assert given.resolve(f"Bearer {token(key(), algorithm, kid=None)}") == ADA


def test_of_two_keys_the_named_one_is_taken(tmp_path: Path) -> None:
    given = provider(tmp_path, public(rsa_key(0), kid="one"), public(rsa_key(1), kid="two"))
    for number, kid, accepted in ((0, "one", True), (1, "two", True), (0, "two", False), (0, None, False)):
        assert (given.resolve(f"Bearer {token(rsa_key(number), kid=kid)}") == ADA) is accepted


@pytest.mark.filterwarnings("ignore::jwt.warnings.InsecureKeyLengthWarning")  # of the issuer that signs with one
@pytest.mark.parametrize(
    "key",
    [
        lambda: public(rsa_key(), kid="one", use="enc"),
        lambda: public(rsa_key(), kid="one", alg="RS512"),
        lambda: public(rsa_key(), kid="one", key_ops=["encrypt"]),
        lambda: public(rsa_key(2, 1024), kid="one"),
        lambda: {**public(rsa_key(), kid="one"), "n": "AQAB!"},
        lambda: {"kty": "oct", "kid": "one", "k": "c2VjcmV0", "alg": "HS256"},
        lambda: {"kty": "RSA", "kid": "one"},
        lambda: {"kid": "one"},
        lambda: "one",
    ],
)
def test_a_key_for_something_else_verifies_nothing(tmp_path: Path, key: Callable[[], Any]) -> None:
    given = provider(tmp_path, key(), public(ec_key(), kid="other"))
    signing = (
        rsa_key(2, 1024)
        if isinstance(found := key(), dict) and len(found.get("n", "")) in range(100, 200)
        else rsa_key()
    )
    assert isinstance(given.resolve(f"Bearer {token(signing)}"), CredentialsRefused)


@pytest.mark.parametrize("algorithms", [["none"], ["HS256"], ["RS256", "HS512"], ["RS257"], [], ["rs256"]])
def test_only_algorithms_of_public_keys_can_be_listed(tmp_path: Path, algorithms: list[str]) -> None:
    with pytest.raises(ValueError):
        provider(tmp_path, algorithms=algorithms)


@pytest.mark.parametrize(
    "text",
    [
        b"{}", b"[]", b'{"keys":[]}', b'{"keys":[{"kty":"oct","k":"YQ"}]}', b"\xff", b"[" * 9000,
        key_set(public(rsa_key())) + b" " * MAX_BYTES,
    ],
    ids=lambda text: str(text[:20]),
)  # fmt: skip
def test_a_file_without_a_key_or_that_is_too_large_is_refused_at_the_start(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "keys.json").write_bytes(text)
    with pytest.raises(ValueError):
        JwtProvider(ISSUER, AUDIENCE, str(tmp_path / "keys.json"))


@pytest.mark.parametrize(
    "url", ["http://issuer.example/keys", "ftp://127.0.0.1/keys", "file:///etc/passwd", "https://"]
)
def test_keys_come_by_tls_unless_from_this_machine(url: str) -> None:
    with pytest.raises(ValueError):
        JwtProvider(ISSUER, AUDIENCE, url)


@pytest.fixture
def served() -> Iterator[Any]:
    """An issuer with one key."""
    with serving_keys(key_set(public(rsa_key(0), kid="one"))) as found:
        yield found


class Clock:
    def __init__(self) -> None:
        self.time = 1000.0

    def __call__(self) -> float:
        return self.time


def test_a_new_key_of_the_issuer_is_fetched_when_a_token_names_it(served: Any) -> None:
    clock = Clock()
    given = JwtProvider(ISSUER, AUDIENCE, served.url, clock=clock)
    assert given.resolve(f"Bearer {token()}") == ADA
    served.keys = key_set(public(rsa_key(1), kid="two"))
    new = f"Bearer {token(rsa_key(1), kid='two')}"
    assert isinstance(given.resolve(new), CredentialsRefused)
    assert not given.lacks_key(new)  # so soon nothing is fetched again
    assert served.asked == 1
    clock.time += RETRY_SECONDS
    assert given.lacks_key(new)
    given.refresh()
    assert given.resolve(new) == ADA
    assert isinstance(given.resolve(f"Bearer {token()}"), CredentialsRefused)
    assert served.asked == 2


def test_made_up_key_ids_have_keys_fetched_no_more_often_than_allowed(served: Any) -> None:
    clock = Clock()
    given = JwtProvider(ISSUER, AUDIENCE, served.url, clock=clock)
    for round_ in range(1, 4):
        clock.time += RETRY_SECONDS
        for number in range(20):
            made_up = f"Bearer {token(kid=str(number))}"
            if given.lacks_key(made_up):
                given.refresh()
            assert isinstance(given.resolve(made_up), CredentialsRefused)
        assert served.asked == 1 + round_


def test_without_a_gateway_a_thread_fetches_the_missing_key(served: Any) -> None:
    clock = Clock()
    given = JwtProvider(ISSUER, AUDIENCE, served.url, clock=clock)
    served.keys = key_set(public(rsa_key(1), kid="two"))
    clock.time += RETRY_SECONDS
    new = f"Bearer {token(rsa_key(1), kid='two')}"
    assert isinstance(given.resolve(new), CredentialsRefused)
    wait_until(lambda: given.resolve(new) == ADA)
    assert served.asked == 2


def test_keys_that_cannot_be_fetched_again_are_used_for_a_while_and_no_longer(served: Any) -> None:
    clock = Clock()
    given = JwtProvider(ISSUER, AUDIENCE, served.url, clock=clock)
    served.status = 500
    clock.time += USABLE_SECONDS - 1
    assert given.resolve(f"Bearer {token()}") == ADA
    wait_until(lambda: served.asked == 2)
    given.refresh()  # waits for the thread, and fetches nothing itself
    clock.time += 1
    assert isinstance(given.resolve(f"Bearer {token()}"), CredentialsRefused)
    served.status = 200
    clock.time += RETRY_SECONDS
    assert given.lacks_key(f"Bearer {token()}")
    given.refresh()
    assert given.resolve(f"Bearer {token()}") == ADA


@pytest.mark.parametrize("fault", ["status", "redirect", "oversize", "no keys", "nobody", "silence"])
def test_an_address_that_has_no_keys_is_tried_again_later(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(issuer_http, "FETCH_SECONDS", 0.2 if fault == "silence" else 20.0)
    clock = Clock()
    good = key_set(public(rsa_key(0), kid="one"))
    with serving_keys(good) as other, serving_keys(good) as served:
        url = served.url
        match fault:
            case "status":
                served.status = 404
            case "redirect":
                served.status, served.location = 302, other.url
            case "oversize":
                served.keys += b" " * MAX_BYTES
            case "no keys":
                served.keys = b"<html>"
            case "nobody":
                url = "http://127.0.0.1:9/keys"
            case _:
                served.held.clear()
        given = JwtProvider(ISSUER, AUDIENCE, url, clock=clock)
        assert isinstance(given.resolve(f"Bearer {token()}"), CredentialsRefused)
        assert other.asked == 0
        if fault == "nobody":
            return
        served.status, served.keys = 200, good
        served.held.set()
        monkeypatch.setattr(issuer_http, "FETCH_SECONDS", 20.0)
        clock.time += RETRY_SECONDS
        given.refresh()
        assert given.resolve(f"Bearer {token()}") == ADA


def test_a_slow_fetch_keeps_no_known_caller_waiting(served: Any) -> None:
    clock = Clock()
    given = JwtProvider(ISSUER, AUDIENCE, served.url, clock=clock)
    served.held.clear()
    clock.time += jwt_provider.FRESH_SECONDS
    assert given.resolve(f"Bearer {token()}") == ADA
    wait_until(lambda: served.asked == 2)
    assert given.resolve(f"Bearer {token()}") == ADA
    assert not given.lacks_key(f"Bearer {token()}")
