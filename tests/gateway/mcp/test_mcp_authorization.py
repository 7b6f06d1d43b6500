"""Basic/authorization: who may call, what they see, and where a client learns how to get a token (RFC 9728, RFC 6750)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import msgspec
import pytest

from discreet import Context, Service
from support.mcp_http import MODERN, McpHttp
from support.vault import SECRET, digest

from ..conftest import Serve
from .conftest import SERVED

pytestmark = pytest.mark.anyio

METADATA = "/.well-known/oauth-protected-resource"


def shop() -> Service:
    service = Service("shop")

    @service.query
    async def look(ctx: Context) -> str:
        return ctx.identity.subject if ctx.identity else "nobody"

    @service.mutation(scopes=["shop:write"])
    async def order() -> str:
        return "ordered"

    @service.query(any_scope=["shop:admin", "shop:audit"])
    async def audit() -> str:
        return "fine"

    return service


def bearer(token: str) -> str:
    return f"Bearer {token}"


@pytest.fixture
def issued(tmp_path: Path) -> Any:
    """Settings for JSON Web Tokens, and a function that makes one with these scopes."""
    issuer = pytest.importorskip("support.issuer")
    keys = tmp_path / "keys.json"
    keys.write_bytes(issuer.key_set(issuer.public(issuer.rsa_key(), kid="one", alg="RS256")))
    settings = {"jwt_issuer": issuer.ISSUER, "jwt_audience": issuer.AUDIENCE, "jwt_jwks": str(keys)}
    return settings, lambda scope="", **more: bearer(issuer.token(scope=scope, **more))


async def names(client: Any, revision: str, token: str) -> list[str]:
    ours = McpHttp(client, revision, authorization=token)
    if revision != MODERN:
        assert (await ours.begin()).status == 200
    return [tool["name"] for tool in (await ours.post("tools/list")).result["tools"]]


@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
async def test_scopes_decide_which_tools_there_are(serve: Serve, revision: str) -> None:
    tokens = (f"ada:{digest(SECRET)}:shop:write+shop:audit", f"bob:{digest('other-token')}")
    async with serve(shop(), tokens=tokens, **SERVED) as client:
        assert await names(client, revision, bearer(SECRET)) == ["shop_look", "shop_order", "shop_audit"]
        assert await names(client, revision, bearer("other-token")) == ["shop_look"]


async def test_scopes_are_those_of_each_request_and_not_those_of_the_session(serve: Serve, issued: Any) -> None:
    settings, token = issued
    async with serve(shop(), **settings, **SERVED) as client:
        ours = McpHttp(client, authorization=token("shop:write"))
        await ours.begin()
        assert (await ours.call("shop_order")).result["content"][0]["text"] == "ordered"
        ours.headers["authorization"] = token("")
        assert [tool["name"] for tool in (await ours.post("tools/list")).result["tools"]] == ["shop_look"]
        assert (await ours.call("shop_order")).status == 403


async def test_a_client_is_told_where_to_get_a_token(serve: Serve, issued: Any) -> None:
    settings, token = issued
    where = f'resource_metadata="http://localhost{METADATA}/mcp"'
    async with serve(shop(), **settings, **SERVED) as client:
        ours = McpHttp(client)
        assert (await ours.post("initialize")).headers["www-authenticate"] == f'Bearer realm="discreet", {where}'
        ours.headers["authorization"] = token(exp=1)
        expired = await ours.post("initialize")
        assert expired.status == 401
        assert expired.headers["www-authenticate"] == f'Bearer realm="discreet", error="invalid_token", {where}'


@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
async def test_a_client_is_told_which_scopes_it_lacks(serve: Serve, issued: Any, revision: str) -> None:
    settings, token = issued
    async with serve(shop(), **settings, **SERVED) as client:
        ours = McpHttp(client, revision, authorization=token("other"))
        if revision != MODERN:
            await ours.begin()
        order, audit = await ours.call("shop_order"), await ours.call("shop_audit")
    for answer, scope in ((order, "shop:write"), (audit, "shop:admin shop:audit")):
        assert (answer.status, answer.code) == (403, -32000)
        where = f'resource_metadata="http://localhost{METADATA}/mcp"'
        assert answer.headers["www-authenticate"] == f'Bearer error="insufficient_scope", scope="{scope}", {where}'


@pytest.mark.parametrize("path", [METADATA, f"{METADATA}/mcp"])
async def test_the_metadata_name_the_issuer_for_everybody(serve: Serve, issued: Any, path: str) -> None:
    settings, _ = issued
    async with serve(shop(), **settings, **SERVED) as client:
        status, headers, _ = await client.request("GET", path)
        assert (status, headers["content-type"]) == (200, "application/json")
        async with client.open("GET", path) as reply:
            found = await reply.json()
        assert (await client.request("POST", path))[0] == 405
        assert (await client.request("GET", f"{METADATA}/other"))[0] == 404
    assert found == {
        "resource": "http://localhost/mcp",
        "authorization_servers": [settings["jwt_issuer"]],
        "resource_name": "shop",
        "bearer_methods_supported": ["header"],
        "scopes_supported": ["shop:admin", "shop:audit", "shop:write"],
    }


@pytest.mark.parametrize(
    ("audience", "resource"),
    [
        ("https://agents.example/shop/mcp", "https://agents.example/shop/mcp"),
        ("https://agents.example/shop", "https://agents.example/shop"),
        ("https://agents.example", "https://agents.example"),
        ("https://agents.example/sho", "https://agents.example/shop/mcp"),
        ("https://others.example", "https://agents.example/shop/mcp"),
        ("https:", "https://agents.example/shop/mcp"),
        ("agents", "https://agents.example/shop/mcp"),
    ],
)
async def test_the_resource_is_the_audience_where_that_is_an_address_of_the_endpoint(
    serve: Serve, issued: Any, audience: str, resource: str, capfd: pytest.CaptureFixture[str]
) -> None:
    settings, _ = issued
    given = {**settings, "jwt_audience": audience, "http_url": "https://agents.example/shop"}
    async with serve(shop(), **given, **SERVED) as client:
        async with client.open("GET", f"{METADATA}/mcp") as reply:
            assert (await reply.json())["resource"] == resource
        answer = await McpHttp(client).post("initialize")
        assert f'resource_metadata="https://agents.example/shop{METADATA}/mcp"' in answer.headers["www-authenticate"]
    assert ("mcp.audience_differs" in capfd.readouterr().err) == (audience.rstrip("/") != resource.rstrip("/"))


@pytest.mark.parametrize("path", [f"{METADATA}/shop/mcp", f"{METADATA}/mcp", METADATA])
async def test_the_metadata_are_also_where_clients_derive_their_place_from_the_address(
    serve: Serve, issued: Any, path: str
) -> None:
    settings, _ = issued
    async with serve(shop(), **settings, http_url="https://agents.example/shop", **SERVED) as client:
        status, headers, _ = await client.request("GET", path, headers={"origin": "https://page.example"})
        assert (status, headers["access-control-allow-origin"]) == (200, "*")


async def test_without_mcp_the_resource_is_the_gateway(serve: Serve, issued: Any) -> None:
    settings, token = issued
    async with serve(shop(), **settings, http_operations=True) as client:
        async with client.open("GET", METADATA) as reply:
            assert (await reply.json())["resource"] == "http://localhost"
        challenges: list[str] = []
        call = b'{"jsonrpc": "2.0", "id": 1, "method": "ListTasks"}'
        for path, body in (("/operations/shop/order", b"{}"), ("/", call)):
            status, headers, _ = await client.request("POST", path, body, {"content-type": "application/json"})
            challenges.append(headers["www-authenticate"] if status == 401 else "")
        status, headers, _ = await client.request(
            "POST", "/operations/shop/order", b"{}", {"content-type": "application/json", "authorization": token("x")}
        )
    where = f'resource_metadata="http://localhost{METADATA}"'
    assert challenges == [f'Bearer realm="discreet", {where}'] * 2
    assert headers["www-authenticate"] == f'Bearer error="insufficient_scope", scope="shop:write", {where}'


async def test_there_are_no_metadata_where_no_issuer_is_known(serve: Serve) -> None:
    async with serve(shop(), tokens=(f"ada:{digest(SECRET)}",), **SERVED) as client:
        assert (await client.request("GET", METADATA))[0] == 404


async def test_pages_of_an_allowed_origin_reach_the_endpoint(serve: Serve) -> None:
    async with serve(shop(), http_origins=["https://app.example"], **SERVED) as client:
        ours = McpHttp(client, origin="https://app.example")
        answer = await ours.begin()
        assert answer.headers["access-control-allow-origin"] == "https://app.example"
        assert "mcp-session-id" in answer.headers["access-control-expose-headers"]
        asked = {"access-control-request-method": "POST", "origin": "https://app.example"}
        status, headers, _ = await client.request("OPTIONS", "/mcp", b"", asked)
        assert status == 204
        allowed = set(headers["access-control-allow-headers"].split(", "))
        assert allowed >= {"authorization", "content-type", "last-event-id", "mcp-method", "mcp-name"}
        assert allowed >= {"mcp-protocol-version", "mcp-session-id"}


async def test_headers_of_a_tool_tell_nothing_to_those_who_may_not_call_it(serve: Serve) -> None:
    service = Service("db")

    @service.query(scopes=["db:read"])
    async def run(region: Annotated[str, msgspec.Meta(extra_json_schema={"x-mcp-header": "Region"})]) -> str:
        return region

    tokens = (f"ada:{digest(SECRET)}:db:read", f"bob:{digest('other-token')}")
    async with serve(service, tokens=tokens, **SERVED) as client:
        ada, bob = (McpHttp(client, MODERN, authorization=bearer(each)) for each in (SECRET, "other-token"))
        wrong = {"name": "db_run", "arguments": {"region": "eu"}}
        assert (await ada.post("tools/call", wrong)).code == -32020
        with_header = await bob.post("tools/call", wrong, mcp_param_region="eu")
        without = await bob.post("tools/call", wrong)
        assert (without.status, without.json) == (with_header.status, with_header.json)
        assert (without.status, without.code) == (403, -32000)
