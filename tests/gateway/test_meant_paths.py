"""What a client is told that asks for a path of nobody's."""

from __future__ import annotations

import msgspec
import pytest

from support.asgi_client import JSON
from support.works import v1

from .conftest import Serve
from .test_rest import UNKNOWN, V1, agent, suggestion_of


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("/message/send", "POST /message:send"),
        ("/messages:send", "POST /message:send"),
        ("/message:stream/", "POST /message:stream"),
        (f"/task/{UNKNOWN}", "GET /tasks/{id}"),
        (f"/tasks/{UNKNOWN}/cancel", "POST /tasks/{id}:cancel"),
        ("/SendMessage", "POST /message:send"),
        ("/agent-card.json", "GET /.well-known/agent-card.json"),
        ("/.well-known/agent-card", "GET /.well-known/agent-card.json"),
        ("/v1/message/send", "POST /v1/message:send"),
        ("/rpc", "POST /,"),
        ("/chat/" + "x" * 5000, "POST /,"),
    ],
)
async def test_a_path_of_nobody_is_told_which_is_near(serve: Serve, path: str, meant: str) -> None:
    async with serve(agent()) as client:
        status, _, answer = await client.request("POST", path, headers={} if "v1" in path else V1)
    suggestion = suggestion_of(msgspec.json.decode(answer))
    assert (status, meant in f"{suggestion},") == (404, True), suggestion
    assert "xxx" not in suggestion


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("method", "path", "setting"),
    [
        ("POST", "/operations/shop/look", "http-operations"),
        ("GET", "/openapi.json", "http-operations"),
        ("POST", "/mcp", "http-mcp"),
        ("GET", "/metrics", "http-metrics"),
        ("GET", "/docs", "GET /openapi.json is served with --http-operations"),
        ("GET", "/swagger.json", "GET /openapi.json"),
        ("GET", "/", "--http-page"),
        ("GET", "/page/requests", "http-page"),
    ],
)
async def test_a_path_that_a_setting_would_serve_names_it(serve: Serve, method: str, path: str, setting: str) -> None:
    async with serve(agent()) as client:
        status, _, answer = await client.request(method, path, headers=V1)
    assert (status, setting in suggestion_of(msgspec.json.decode(answer))) == (405 if path == "/" else 404, True)


@pytest.mark.anyio
@pytest.mark.parametrize("path", ["/docs", "/redoc", "/swagger/index.html", "/openapi.yaml"])
async def test_where_others_have_their_documents_the_own_one_is_named(serve: Serve, path: str) -> None:
    async with serve(agent(), http_operations=True) as client:
        status, _, answer = await client.request("GET", path, headers=V1)
    assert (status, "GET /openapi.json" in suggestion_of(msgspec.json.decode(answer))) == (404, True)


@pytest.mark.anyio
@pytest.mark.parametrize("http_page", [False, True])
async def test_a_second_slash_is_tolerated_as_clients_join_paths_so(serve: Serve, http_page: bool) -> None:
    async with serve(agent(), http_page=http_page) as client:
        body = msgspec.json.encode(v1("end"))
        for method, path, given in (
            ("POST", "//message:send", body), ("GET", "//tasks", b""), ("GET", "///.well-known/agent-card.json", b""),
        ):  # fmt: skip
            status, _, answer = await client.request(method, path, given, {**V1, **JSON} if given else V1)
            assert status == 200, answer
