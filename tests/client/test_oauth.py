"""A client of OAuth: how it asks for tokens, how long it keeps them, and what its text may say."""

from __future__ import annotations

import os
import stat
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

pytest.importorskip("h11")

from discreet.client import oauth
from discreet.client.oauth import AccessTokens, TokenRefused, read_oauth
from support.form_server import FormServer, taking_forms

pytestmark = pytest.mark.anyio


@pytest.fixture
def server() -> Iterator[FormServer]:
    """An authorization server whose tokens have numbers."""

    def answer(form: dict[str, str]) -> Any:
        return {"access_token": f"token-{len(found.asked)}", "token_type": "Bearer", "expires_in": 600, **more}

    more: dict[str, Any] = {}
    with taking_forms(answer) as found:
        found.more = more  # type: ignore[attr-defined]
        yield found


def client(server: FormServer | str, **keys: str) -> str:
    given = {
        "token-url": server if isinstance(server, str) else server.url,
        "client-id": "sh op",
        "client-secret": "s3cret/of+it",
        **{name.replace("_", "-"): value for name, value in keys.items()},
    }
    return "[oauth]\n" + "".join(f'{name} = "{value}"\n' for name, value in given.items() if value)


BASIC = "Basic " + b64encode(b"sh+op:s3cret%2Fof%2Bit").decode()


async def test_a_token_that_is_none_of_oauth_is_sent_as_it_is() -> None:
    assert await AccessTokens().bearer("plain", "caller") == "plain"


async def test_a_client_gets_a_token_for_itself_and_keeps_it(server: FormServer) -> None:
    tokens, text = AccessTokens(), client(server, scope="a b", resource="https://pets.example/mcp", audience="pets")
    assert [await tokens.bearer(text) for _ in range(3)] == ["token-1"] * 3
    assert server.asked == [
        {
            "grant_type": "client_credentials",
            "scope": "a b",
            "resource": "https://pets.example/mcp",
            "audience": "pets",
        }
    ]
    assert server.authorizations == [BASIC]


async def test_many_calls_wait_for_one_token(server: FormServer) -> None:
    tokens, got = AccessTokens(), list[str]()
    server.held.clear()

    async def get() -> None:
        got.append(await tokens.bearer(client(server)))

    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(get)
        while not server.asked:
            await anyio.lowlevel.checkpoint()
        server.held.set()
    assert got == ["token-1"] * 5
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("life", "kept"), [(600, True), ("600", True), (None, True), (0, False), (-5, False), ("x", False)]
)
async def test_a_token_is_replaced_before_its_end(server: FormServer, life: object, kept: bool) -> None:
    server.more["expires_in"] = life  # type: ignore[attr-defined]
    tokens = AccessTokens()
    assert await tokens.bearer(client(server)) == "token-1"
    assert (await tokens.bearer(client(server)) == "token-1") is kept


async def test_each_caller_has_a_token_of_its_own_and_the_client_another(server: FormServer) -> None:
    tokens, text = AccessTokens(), client(server, grant="token-exchange", scope="pets")
    got = [await tokens.bearer(text, caller) for caller in ("ada", "bob", "ada", "")]
    assert got == ["token-1", "token-2", "token-1", "token-3"]
    exchange = "urn:ietf:params:oauth:grant-type:token-exchange"
    kind = "urn:ietf:params:oauth:token-type:access_token"
    assert server.asked[0] == {
        "grant_type": exchange, "subject_token": "ada", "subject_token_type": kind, "scope": "pets"
    }  # fmt: skip
    assert server.asked[2] == {"grant_type": "client_credentials", "scope": "pets"}


async def test_tokens_of_callers_are_bounded(server: FormServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oauth, "MAX_TOKENS", 2)
    tokens, text = AccessTokens(), client(server, grant="token-exchange")
    for caller in ("ada", "bob", "eve"):
        await tokens.bearer(text, caller)
    assert [await tokens.bearer(text, caller) for caller in ("eve", "bob", "ada")] == ["token-3", "token-2", "token-4"]


async def test_a_refresh_token_is_used_and_the_next_one_kept(server: FormServer, tmp_path: Path) -> None:
    file = tmp_path / "refresh"
    file.write_text("first\n")
    server.more |= {"refresh_token": "second", "expires_in": 0}  # type: ignore[attr-defined]
    tokens, text = AccessTokens(), client(server, grant="refresh-token", refresh_token_file=str(file))
    await tokens.bearer(text)
    assert (file.read_text(), stat.S_IMODE(file.stat().st_mode)) == ("second\n", 0o600)
    await tokens.bearer(text)
    assert [form["refresh_token"] for form in server.asked] == ["first", "second"]
    assert server.asked[0]["grant_type"] == "refresh_token"
    assert os.listdir(tmp_path) == ["refresh"]


async def test_the_secret_is_sent_in_the_form_where_that_is_asked_for(
    server: FormServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_SECRET", "from-the-environment")
    text = client(server, authentication="post", client_secret="", client_secret_env="SHOP_SECRET")
    await AccessTokens().bearer(text)
    assert (server.asked[0]["client_id"], server.asked[0]["client_secret"]) == ("sh op", "from-the-environment")
    assert server.authorizations == [None]


async def test_a_private_key_signs_a_proof(server: FormServer, tmp_path: Path) -> None:
    jwt = pytest.importorskip("jwt")
    issuer = pytest.importorskip("support.issuer")
    from cryptography.hazmat.primitives import serialization as form

    key, file = issuer.ec_key(), tmp_path / "key.pem"
    file.write_bytes(key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption()))
    text = client(server, client_secret="", private_key_file=str(file), algorithm="ES256", key_id="one")
    read_oauth(text)
    await AccessTokens().bearer(text)
    proof = server.asked[0]["client_assertion"]
    claims = jwt.decode(proof, key.public_key(), ["ES256"], audience=server.url)
    assert (claims["iss"], claims["sub"], claims["exp"] - claims["iat"]) == ("sh op", "sh op", 60)
    assert jwt.get_unverified_header(proof)["kid"] == "one"
    assert server.asked[0]["client_assertion_type"].endswith(":jwt-bearer")
    with pytest.raises(ValueError, match="RS256"):
        read_oauth(client(server, client_secret="", private_key_file=str(file)))


@pytest.mark.parametrize(
    ("status", "answer", "caller", "reason", "of_caller", "may_pass"),
    [
        (400, {"error": "invalid_grant", "error_description": "no"}, "ada", "invalid_grant", True, False),
        (400, {"error": "invalid_grant"}, "", "invalid_grant", False, False),
        (401, {"error": "invalid_client"}, "ada", "invalid_client", False, False),
        (400, {"error": "you are a fool"}, "ada", "HTTP 400", False, False),
        (503, b"<html>", "ada", "HTTP 503", False, True),
        (200, b"<html>", "ada", "HTTP 200", False, False),
        (200, {"access_token": "x", "token_type": "mac"}, "", "the token is no bearer token", False, False),
        (200, {"access_token": "x\ny", "token_type": "bearer"}, "", "the answer holds no token", False, False),
        (200, {"token_type": "bearer"}, "", "the answer holds no token", False, False),
    ],
)  # fmt: skip
async def test_an_answer_without_a_token_says_why(
    server: FormServer, status: int, answer: Any, caller: str, reason: str, of_caller: bool, may_pass: bool
) -> None:
    server.status, server.answer = status, lambda _: answer
    with pytest.raises(TokenRefused) as refused:
        await AccessTokens().bearer(client(server, grant="token-exchange"), caller)
    assert (refused.value.reason, refused.value.of_caller, refused.value.may_pass) == (reason, of_caller, may_pass)


async def test_a_server_that_cannot_be_reached_may_be_there_later() -> None:
    with pytest.raises(TokenRefused) as refused:
        await AccessTokens().bearer(client("http://127.0.0.1:9/token"))
    assert (refused.value.reason, refused.value.may_pass) == ("connect", True)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[oauth]\nx", "TOML"), ("[oauth]\n[other]\n", "other"), ("[oauth]\n", "token-url and client-id"),
        (client("https://i.example", client_secrets="x"), "client-secrets: there is no such key; nearest: client-secret"),
        (client("https://i.example", grant="password"), "grant"), (client("https://i.example", authentication="no"), "auth"),
        (client("http://i.example/token"), "token-url"), (client("ftp://127.0.0.1/"), "token-url"),
        (client("https://i.example", client_secret=""), "client-secret"),
        (client("https://i.example", client_secret_env="X"), "client-secret"),
        (client("https://i.example", client_secret="", client_secret_env="NOT_THERE"), "client-secret-env"),
        (client("https://i.example", authentication="private-key"), "private-key"),
        (client("https://i.example", client_secret="", private_key_file="/nowhere"), "private-key-file"),
        (client("https://i.example", grant="refresh-token"), "refresh-token-file"),
        (client("https://i.example", grant="refresh-token", refresh_token_file="/nowhere"), "refresh-token-file"),
        (client("https://i.example", refresh_token_file="/nowhere"), "refresh-token-file"),
        ("[oauth]\ntoken-url = 1\n", "token-url"), ("[oauth]\nclient-id = \"\"\n", "client-id"),
    ],
)  # fmt: skip
def test_a_text_that_is_no_client_is_refused_in_one_line_without_its_values(text: str, named: str) -> None:
    with pytest.raises(ValueError) as refused:
        read_oauth(text)
    assert named in str(refused.value)
    assert "\n" not in str(refused.value)
    assert "s3cret" not in str(refused.value)
