"""JSON Web Tokens over HTTP: what the settings say, and a request that waits for the key of its token."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jwt")

from discreet.daemon.operations.service import DeclarationError
from discreet.gateway.jwt_provider import JwtProvider
from discreet.http import asgi
from support.issuer import AUDIENCE, ISSUER, key_set, public, rsa_key, serving_keys, token, written

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
                wanted = 'Bearer realm="discreet", error="invalid_token"'
                assert (reply.status, reply.headers["www-authenticate"]) == (401, wanted)
        eve = f"Bearer {token(sub='eve')}"
        assert (await client.call("GetTask", {"id": task}, **V1, authorization=eve))["error"]["code"] == -32001


async def test_a_request_waits_for_the_new_key_of_its_issuer(serve: Serve) -> None:
    time = [1000.0]
    with serving_keys(key_set(public(rsa_key(), kid="one"))) as served:
        provider = JwtProvider(ISSUER, AUDIENCE, served.url, clock=lambda: time[0])
        async with serve(provider=provider) as client:
            served.keys = key_set(public(rsa_key(1), kid="two"))
            time[0] += 60
            new = f"Bearer {token(rsa_key(1), kid='two')}"
            assert "result" in await client.call("SendMessage", hello(), **V1, authorization=new)
            assert served.asked == 2


@pytest.mark.parametrize(
    "given",
    [
        {"jwt_audience": None}, {"jwt_issuer": None}, {"jwt_jwks": None}, {"jwt_algorithms": ["none"]},
        {"jwt_algorithms": ["HS256"]}, {"jwt_jwks": "http://issuer.example/keys"}, {"jwt_jwks": "/nowhere"},
        {"jwt_jwks": __file__}, {"tokens": [f"ada:{'0' * 64}"]}, {"jwt_issuer": "two words"}, {"jwt_audience": ""},
    ],
)  # fmt: skip
def test_settings_that_are_incomplete_or_unsafe_are_refused(tmp_path: Path, given: dict[str, Any]) -> None:
    keys = written(tmp_path / "keys.json", public(rsa_key(), kid="one"))
    with pytest.raises(DeclarationError) as refused:
        asgi(agent_of(), isolated=True, **settings(keys, **given))
    assert "\n" not in str(refused.value)
