"""Operations by plain HTTP: who must be known, and what callers are told whose requests are refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from discreet import Context, Service
from support.asgi_client import JSON

from .conftest import Serve
from .test_operations import ADA, BOB, TOKENS, get, post, shop

pytestmark = pytest.mark.anyio


@pytest.fixture
def served(serve: Serve) -> Any:
    return lambda *hosted, **settings: serve(*(hosted or (shop(),)), http_operations=True, **settings)


async def test_without_scopes_too_callers_must_be_known_unless_an_operation_is_public(served: Any) -> None:
    shop = Service("shop")

    @shop.query
    def closed() -> int:
        return 1

    @shop.query(public=True)
    def opened(ctx: Context) -> str | None:
        return ctx.identity and ctx.identity.subject

    async with served(shop, tokens=TOKENS) as client:
        for headers, status in (({}, 401), ({"authorization": "Bearer wrong"}, 401), (BOB, 200)):
            assert (await get(client, "shop/closed", **headers))[0] == status
            assert (await post(client, "shop/closed", **headers))[0] == status
        assert (await get(client, "shop/opened"))[::2] == (200, None)
        assert (await get(client, "shop/opened", **BOB))[::2] == (200, "bob")
        for headers, paths in (({}, ["opened"]), (BOB, ["closed", "opened"])):
            document = json.loads((await client.request("GET", "/openapi.json", headers=headers))[2])
            assert list(document["paths"]) == [f"/operations/shop/{name}" for name in paths]
        security = {path.rpartition("/")[2]: each["get"].get("security") for path, each in document["paths"].items()}
        assert security == {"closed": [{"bearer": []}], "opened": None}
    async with served(shop) as client:
        assert (await get(client, "shop/closed"))[0] == 200


async def test_who_may_call_nothing_is_asked_for_credentials_before_there_is_a_document(served: Any) -> None:
    async with served(tokens=TOKENS) as client:
        status, headers, _ = await client.request("GET", "/openapi.json")
        assert (status, headers["www-authenticate"]) == (401, 'Bearer realm="discreet"')
        assert (await client.request("GET", "/openapi.json", headers=BOB))[0] == 200


async def test_what_is_refused_says_what_to_send(served: Any) -> None:
    async with served(max_message_bytes=100) as client:
        for verb, path, body, headers, status, told in (
            ("POST", "shop/get", b"", JSON, 400, "{}"),
            ("POST", "shop/get", b"{}", {"content-type": "text/plain"}, 415, "application/json"),
            ("POST", "shop/get", b"x" * 101, JSON, 413, "100 bytes"),
            ("GET", "shop/buy", b"", {}, 405, "POST"),
            ("DELETE", "shop/get", b"", {}, 405, "GET"),
            ("POST", "shop/git", b"{}", JSON, 404, "nearest: shop/get"),
            ("POST", "shop/hiden", b"{}", JSON, 404, "Method not found"),
            ("POST", "x" * 1000, b"{}", JSON, 404, "Method not found"),
        ):
            found, got, answer = await client.request(verb, f"/operations/{path}", body, headers)
            assert (found, told in json.loads(answer)["message"]) == (status, True), answer
            assert ("allow" in got) is (status == 405)
            assert b"hidden" not in answer


async def test_the_nearest_name_is_one_that_the_caller_may_call(served: Any) -> None:
    async with served(tokens=TOKENS) as client:
        for headers, near in ((BOB, False), (ADA, True)):
            status, _, error = await post(client, "shop/buyy", **headers)
            assert (status, "shop/buy" in error["message"]) == (404, near)
        unknown = [(await post(client, name))[::2] for name in ("shop/buyy", "shop/hidden", "shop/get")]
        assert unknown == [unknown[0]] * 3
        assert unknown[0][0] == 401
