"""Tokens that the authorization server is asked about (RFC 7662): which are accepted, how often it is asked, and what callers get
while it does not answer."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from discreet import Context, CredentialsRefused, Identity, Service
from discreet.client import Unavailable
from discreet.daemon.operations.access import CredentialsUnchecked
from discreet.daemon.operations.service import DeclarationError
from discreet.errors.codes import UPSTREAM_MESSAGE
from discreet.gateway import introspection_provider as introspection
from discreet.gateway.introspection_provider import IntrospectionProvider
from discreet.http import asgi
from discreet.testing import in_memory
from support.form_server import FormServer, taking_forms
from support.mcp_http import McpHttp
from support.waits import wait_until

from .conftest import Serve, agent_of

pytestmark = pytest.mark.anyio

ISSUER, AUDIENCE, CLIENT = "https://issuer.example", "https://shop.example/mcp", "dae mon:s3cret/of+it"
ACTIVE = {"active": True, "iss": ISSUER, "aud": AUDIENCE, "sub": "ada", "scope": "shop:write list"}
TOKEN = "tok-4Kq9-opaque-and-long"
ANSWERS: dict[str, Any] = {}
METADATA = "/.well-known/oauth-protected-resource"


@pytest.fixture
def server() -> Iterator[FormServer]:
    """An authorization server. Tokens that have no answer are not active."""
    with taking_forms(lambda form: ANSWERS.get(form["token"], {"active": False})) as found:
        ANSWERS.clear()
        ANSWERS[TOKEN] = ACTIVE
        yield found


def tokens(server: FormServer) -> list[str]:
    return [form["token"] for form in server.asked]


class Clock:
    def __init__(self) -> None:
        self.time = 1000.0

    def __call__(self) -> float:
        return self.time


def provider(server: FormServer, clock: Clock | None = None) -> IntrospectionProvider:
    return IntrospectionProvider(ISSUER, AUDIENCE, server.url, CLIENT, **({"clock": clock} if clock else {}))


def asked(given: IntrospectionProvider, token: str = TOKEN) -> Any:
    """What the provider makes of a token, as a request by HTTP finds it."""
    if lacking := given.lacks_key(f"Bearer {token}"):
        given.refresh(lacking)
    return given.resolve(f"Bearer {token}")


ADA = Identity("ada", frozenset({"shop:write", "list"}))


@pytest.mark.parametrize(
    ("changes", "identity"),
    [
        ({}, ADA),
        ({"iss": None}, ADA),
        ({"aud": ["other", AUDIENCE]}, ADA),
        ({"exp": time.time() + 86_400, "nbf": time.time() - 10, "token_type": "Bearer", "username": "x"}, ADA),
        ({"scope": None}, Identity("ada")),
        ({"scope": ["list", "shop:write"]}, ADA),
        ({"sub": None, "client_id": "robot"}, Identity("client:robot", ADA.scopes)),
    ],
)
def test_an_active_token_names_its_caller_and_the_scopes(
    server: FormServer, changes: dict[str, Any], identity: Identity
) -> None:
    ANSWERS[TOKEN] = {**ACTIVE, **changes}
    assert asked(provider(server)) == identity
    assert server.authorizations == ["Basic " + base64.b64encode(b"dae+mon:s3cret%2Fof%2Bit").decode()]


@pytest.mark.parametrize(
    "changes",
    [
        {"active": False}, {"iss": "https://other.example"}, {"aud": None}, {"aud": "https://other.example/mcp"}, {"aud": []},
        {"exp": 1}, {"nbf": 4_000_000_000}, {"sub": None}, {"sub": ""}, {"sub": "x" * 2000}, {"scope": "x " * 9000},
    ],
)  # fmt: skip
def test_a_token_that_is_not_for_here_is_refused(server: FormServer, changes: dict[str, Any]) -> None:
    ANSWERS[TOKEN] = {name: value for name, value in {**ACTIVE, **changes}.items() if value is not None}
    assert isinstance(asked(provider(server)), CredentialsRefused)


@pytest.mark.parametrize("header", ["Basic x", "Bearer", "Bearer a b", "Bearer ü", f"Bearer {'x' * 20_000}", "x"])
def test_what_is_no_token_is_refused_unasked(server: FormServer, header: str) -> None:
    given = provider(server)
    assert not given.lacks_key(header)
    assert isinstance(given.resolve(header), CredentialsRefused)
    assert not server.asked


def test_an_answer_counts_for_some_seconds_and_no_longer_than_its_token(server: FormServer) -> None:
    clock = Clock()
    given = provider(server, clock)
    assert asked(given) == asked(given) == ADA
    assert isinstance(asked(given, "other"), CredentialsRefused)
    assert isinstance(asked(given, "other"), CredentialsRefused)
    assert tokens(server) == [TOKEN, "other"]
    ANSWERS[TOKEN] = {"active": False}
    clock.time += introspection.KEPT_SECONDS - 0.1
    assert asked(given) == ADA
    clock.time += 0.1
    assert isinstance(asked(given), CredentialsRefused)
    ANSWERS["short"] = {**ACTIVE, "exp": time.time() - introspection.LEEWAY_SECONDS + 5}
    assert asked(given, "short") == ADA
    clock.time += 5
    assert given.lacks_key("Bearer short")


def test_answers_are_bounded_and_made_up_tokens_displace_none_that_is_active(
    server: FormServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(introspection, "MAX_KEPT", 3)
    given = provider(server)
    assert asked(given) == ADA
    for number in range(5):
        asked(given, f"made-up-{number}")
    assert not given.lacks_key(f"Bearer {TOKEN}")
    assert [bool(given.lacks_key(f"Bearer made-up-{number}")) for number in range(5)] == [
        True,
        True,
        False,
        False,
        False,
    ]


@pytest.mark.parametrize("fault", ["status", "no JSON", "nobody", "silence"])
def test_while_the_server_does_not_answer_no_token_is_accepted_and_it_is_left_alone(
    server: FormServer, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from discreet.gateway import issuer_http

    clock = Clock()
    given = provider(server, clock)
    match fault:
        case "status":
            server.status = 401
        case "no JSON":
            ANSWERS[TOKEN] = b"<html>"
        case "nobody":
            given = IntrospectionProvider(ISSUER, AUDIENCE, "http://127.0.0.1:9/x", CLIENT, clock=clock)
        case _:
            monkeypatch.setattr(issuer_http, "FETCH_SECONDS", 0.1)
            server.held.clear()
    assert isinstance(asked(given), CredentialsUnchecked)
    assert isinstance(asked(given), CredentialsUnchecked)
    assert len(server.asked) == (fault != "nobody")
    assert not given.lacks_key(f"Bearer {TOKEN}")
    clock.time += introspection.PAUSE_SECONDS
    assert given.lacks_key(f"Bearer {TOKEN}") == TOKEN


def test_a_token_that_the_server_can_make_nothing_of_is_refused_and_others_are_asked_about(server: FormServer) -> None:
    given = provider(server)
    server.status = 400
    assert isinstance(asked(given, "odd"), CredentialsRefused)
    server.status = 200
    assert asked(given) == ADA


def shop() -> Service:
    service = Service("shop")

    @service.query
    async def look(ctx: Context) -> str:
        return ctx.identity.subject if ctx.identity else "nobody"

    @service.mutation(scopes=["shop:write"])
    async def order() -> str:
        return "ordered"

    @service.mutation(scopes=["shop:admin"])
    async def close() -> str:
        return "closed"

    return service


def settings(tmp_path: Path, url: str, **more: Any) -> dict[str, Any]:
    client = tmp_path / "client"
    client.write_text(f"{CLIENT}\n")
    return {
        "jwt_issuer": ISSUER, "jwt_audience": AUDIENCE, "auth_introspect": url, "auth_client": str(client), **more
    }  # fmt: skip


async def test_by_http_a_request_waits_for_the_answer_and_many_share_one(
    serve: Serve, server: FormServer, tmp_path: Path
) -> None:
    served = settings(tmp_path, server.url, http_mcp=True, http_operations=True)
    where = f'resource_metadata="http://localhost{METADATA}/mcp"'
    async with serve(shop(), **served) as client:
        answers: list[Any] = []

        async def look() -> None:
            answers.append(await client.request("POST", "/operations/shop/look", b"{}", OURS))

        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(look)
        assert [(status, body) for status, _, body in answers] == [(200, b'"ada"')] * 5
        assert tokens(server) == [TOKEN]
        ours = McpHttp(client, authorization=f"Bearer {TOKEN}")
        await ours.begin()
        assert (await ours.call("shop_order")).result["content"][0]["text"] == "ordered"
        challenge = f'Bearer error="insufficient_scope", scope="shop:admin", {where}'
        lacking = await ours.call("shop_close")
        assert (lacking.status, lacking.headers["www-authenticate"]) == (403, challenge)
        status, headers, _ = await client.request("POST", "/operations/shop/close", b"{}", OURS)
        assert (status, headers["www-authenticate"]) == (403, challenge)
        other = {**OURS, "authorization": "Bearer other"}
        status, headers, _ = await client.request("POST", "/operations/shop/look", b"{}", other)
        assert (status, headers["www-authenticate"]) == (
            401, f'Bearer realm="discreet", error="invalid_token", {where}'
        )  # fmt: skip
        async with client.open("GET", f"{METADATA}/mcp") as reply:
            assert (await reply.json())["authorization_servers"] == [ISSUER]


OURS: Mapping[str, str] = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"}


async def test_by_http_a_server_that_does_not_answer_is_503_and_nothing_of_the_token_is_logged(
    serve: Serve, server: FormServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    server.status = 500
    async with serve(shop(), **settings(tmp_path, server.url, http_operations=True, http_mcp=True)) as client:
        status, headers, body = await client.request("POST", "/operations/shop/look", b"{}", OURS)
        assert (status, headers["retry-after"], json.loads(body)["code"]) == (503, "1", "UNAVAILABLE")
        assert json.loads(body)["message"] == UPSTREAM_MESSAGE
        assert (await McpHttp(client, authorization=f"Bearer {TOKEN}").post("initialize")).status == 503
    lines = capfd.readouterr().err
    assert "identity.introspection_failed" in lines
    assert TOKEN not in lines and "s3cret" not in lines


async def test_over_stdio_the_first_call_with_a_token_is_to_be_repeated(server: FormServer) -> None:
    given = provider(server)
    async with in_memory(shop(), provider=given) as daemon:
        ours = {"authorization": f"Bearer {TOKEN}"}
        with pytest.raises(Unavailable):
            await daemon.call("shop/order", {}, service_params=ours)
        wait_until(lambda: not given.lacks_key(f"Bearer {TOKEN}"))
        assert await daemon.call("shop/order", {}, service_params=ours) == "ordered"


@pytest.mark.parametrize(
    "given",
    [
        {"jwt_audience": None}, {"jwt_issuer": None}, {"auth_client": None}, {"auth_introspect": None},
        {"jwt_jwks": "https://issuer.example/keys"}, {"jwt_algorithms": ["RS256"]}, {"tokens": [f"ada:{'0' * 64}"]},
        {"auth_introspect": "http://issuer.example/introspect"}, {"auth_introspect": "ftp://127.0.0.1/"},
        {"auth_client": __file__}, {"auth_client": "/nowhere"}, {"auth_client": "/dev/null"},
    ],
)  # fmt: skip
def test_settings_that_are_incomplete_or_unsafe_are_refused(tmp_path: Path, given: dict[str, Any]) -> None:
    with pytest.raises(DeclarationError) as refused:
        asgi(agent_of(), isolated=True, **settings(tmp_path, "https://issuer.example/introspect", **given))
    assert "\n" not in str(refused.value)
    assert "s3cret" not in str(refused.value)
