"""Hosts and origins: what pages of strangers get, and what pages of those get that are allowed."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from discreet import DeclarationError
from discreet.agents import ApiKey, requires
from discreet.daemon.apps import AppError
from discreet.daemon.host import Host
from discreet.daemon.settings import Settings
from discreet.gateway.gateway import Gateway
from discreet.http import asgi
from support.asgi_client import JSON, AsgiClient
from support.card_keys import private_pem
from support.vault import SECRET, digest

from .conftest import Serve, agent_of
from .test_jsonrpc import V1, hello

pytestmark = pytest.mark.anyio

APP = "https://app.example"
EVIL = "https://evil.example"
CARD = "/.well-known/agent-card.json"
PREFLIGHT = {"access-control-request-method": "POST", "access-control-request-headers": "authorization,content-type"}


def cors(headers: dict[str, str]) -> set[str]:
    return {name for name in headers if name.startswith("access-control-")}


EVERYTHING = {"http_operations": True, "http_mcp": True, "http_page": True, "http_metrics": True}
PATHS = [
    ("GET", "/"), ("GET", "/page/requests"), ("GET", "/healthz"), ("GET", "/metrics"), ("GET", "/openapi.json"), ("GET", "/nowhere"),
    ("GET", "/tasks"), ("POST", "/"), ("POST", "/message:stream"), ("POST", "/operations/nothing"), ("POST", "/mcp"),
]  # fmt: skip


async def test_strangers_are_refused_at_every_path_and_told_which_setting_lets_them_in(serve: Serve) -> None:
    async with serve(**EVERYTHING) as client:
        for headers, address, status, setting in (
            ({"host": "evil.example"}, "127.0.0.1", 421, b"--http-host"),
            ({"host": "evil.example", "origin": "http://evil.example", **PREFLIGHT}, "127.0.0.1", 421, b"--http-host"),
            ({"origin": EVIL}, "127.0.0.1", 403, b"--http-origin"),
            ({}, "192.0.2.7", 403, b"--http-open"),
        ):
            client.client = address
            for method, path in PATHS:
                found, told, text = await client.request(method, path, b"{}", {**JSON, **headers})
                assert (path, found, setting in text, cors(told)) == (path, status, True, set())


async def test_no_answer_may_be_taken_for_another_type(serve: Serve) -> None:
    async with serve(**EVERYTHING) as client:
        for headers in ({}, {"host": "evil.example"}, {"origin": EVIL}):
            for method, path in (*PATHS, ("GET", CARD)):
                body = json.dumps(hello()).encode() if method == "POST" else b""
                _, told, _ = await client.request(method, path, body, {**JSON, "a2a-version": "1.0", **headers})
                assert told["x-content-type-options"] == "nosniff", path


async def test_without_a_list_no_page_of_another_origin_may_call_or_read(client: AsgiClient) -> None:
    status, headers, _ = await client.request("OPTIONS", "/", b"", {"origin": EVIL, **PREFLIGHT})
    assert (status, cors(headers)) == (403, set())
    _, headers, _ = await client.request("GET", "/tasks")
    assert (cors(headers), headers.get("vary", "").lower().count("origin")) == (set(), 0)


@pytest.mark.parametrize(
    "settings", [{}, {"http_origins": [APP]}, {"http_hosts": ["localhost"], "tokens": [f"ada:{digest(SECRET)}"]}]
)
async def test_the_public_card_may_be_read_by_every_page_and_by_no_other_host(
    serve: Serve, settings: dict[str, Any]
) -> None:
    asked = {"access-control-request-method": "GET", "access-control-request-headers": "a2a-version"}
    async with serve(**settings) as client:
        for path in (CARD, "/.well-known/agent.json"):
            for method, more, wanted in (
                ("GET", {}, 200),
                ("HEAD", {}, 200),
                ("OPTIONS", asked, 204),
                ("PUT", {}, 403),
            ):
                status, headers, _ = await client.request(method, path, headers={"origin": EVIL, **more})
                assert (status, headers.get("access-control-allow-origin")) == (wanted, None if wanted == 403 else "*")
            assert "access-control-allow-credentials" not in headers
            status, _, _ = await client.request("GET", path, headers={"origin": EVIL, "host": "evil.example"})
            assert status == 421


async def test_what_pages_of_others_embed_is_refused_and_links_to_here_are_followed(client: AsgiClient) -> None:
    for site in ("cross-site", "same-site", "same-origin", "none"):
        image = {"sec-fetch-site": site, "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image"}
        frame = {"sec-fetch-site": site, "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe"}
        link = {"sec-fetch-site": site, "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
        expected = 200 if site in ("same-origin", "none") else 403
        for headers, status in ((image, expected), (frame, expected), (link, 200)):
            assert (await client.request("GET", CARD, headers=headers))[0] == status


@pytest.mark.parametrize("path", ["/", "/message:send", "/mcp"])
async def test_a_preflight_of_an_allowed_origin_is_answered(serve: Serve, path: str) -> None:
    async with serve(http_origins=[APP]) as client:
        status, headers, body = await client.request("OPTIONS", path, headers={"origin": APP, **PREFLIGHT})
        assert (status, body, headers["access-control-allow-origin"]) == (204, b"", APP)
        allowed = headers["access-control-allow-headers"].split(", ")
        assert {"authorization", "content-type", "a2a-version", "a2a-extensions", "last-event-id"} <= set(allowed)
        assert {"GET", "POST", "DELETE"} <= set(headers["access-control-allow-methods"].split(", "))
        assert "origin" in headers["vary"].lower()
        status, headers, _ = await client.request("OPTIONS", path, headers={"origin": EVIL, **PREFLIGHT})
        assert (status, cors(headers)) == (403, set())


async def test_an_api_key_of_the_card_may_be_sent_by_pages(serve: Serve) -> None:
    agent = agent_of(
        security_schemes={"key": ApiKey(name="X-Key", location="header")}, security=[requires({"key": []})]
    )
    async with serve(agent, http_origins=[APP], tokens=[f"ada:{digest(SECRET)}"]) as client:
        _, headers, _ = await client.request("OPTIONS", "/", headers={"origin": APP, **PREFLIGHT})
        assert "x-key" in headers["access-control-allow-headers"].split(", ")
        async with client.stream("SendMessage", hello(), **V1, origin=APP) as reply:
            assert (reply.status, reply.headers["access-control-allow-origin"]) == (401, APP)


async def test_the_server_itself_may_be_asked_for_its_methods(client: AsgiClient) -> None:
    status, headers, body = await client.request("OPTIONS", "*")
    assert (status, headers["allow"], body) == (204, "GET, HEAD, POST, PUT, DELETE", b"")
    assert (await client.request("OPTIONS", "*", headers={"host": "evil.example"}))[0] == 421
    assert (await client.request("OPTIONS", "*", headers={"origin": EVIL}))[0] == 403
    assert (await client.request("OPTIONS", "/*"))[0] == 404  # a path of this name is a path


@pytest.mark.parametrize("origin", [APP, "HTTPS://APP.EXAMPLE"])
async def test_pages_of_an_allowed_origin_may_read_answers_streams_and_the_card(serve: Serve, origin: str) -> None:
    async with serve(http_origins=[APP]) as client:
        for method in ("SendMessage", "SendStreamingMessage"):
            async with client.stream(method, hello(), **V1, origin=origin) as reply:
                assert reply.headers["access-control-allow-origin"] == origin
                assert "www-authenticate" in reply.headers["access-control-expose-headers"]
                assert "origin" in reply.headers["vary"].lower()
                await reply.body()
        status, headers, _ = await client.request("GET", "/tasks", headers={"origin": origin})
        assert (status, headers["access-control-allow-origin"]) == (400, origin)  # 0.3 has no list
        _, headers, _ = await client.request("GET", "/tasks")
        assert (cors(headers), "origin" in headers["vary"].lower()) == (set(), True)


async def test_everybody_may_be_allowed_but_no_credentials_of_the_browser_ever_are(serve: Serve) -> None:
    for allowed, origin in ((["*"], EVIL), (["*"], "null"), ([APP], APP)):
        async with serve(http_origins=allowed) as client:
            for method, path, more in (("OPTIONS", "/", PREFLIGHT), ("GET", "/tasks", {})):
                _, headers, _ = await client.request(method, path, headers={"origin": origin, **more})
                assert headers["access-control-allow-origin"] == origin
                assert "access-control-allow-credentials" not in headers


async def test_an_options_request_that_is_no_preflight_is_not_answered_as_one(serve: Serve) -> None:
    async with serve(http_origins=[APP]) as client:
        status, headers, _ = await client.request("OPTIONS", "/", headers={"origin": APP})
        assert (status, headers["allow"]) == (405, "POST")


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://localhost", 200), ("https://localhost", 200), ("http://localhost:8000", 403), ("http://127.0.0.1", 403),
        ("http://localhost.evil.example", 403), ("http://evil.example", 403), ("null", 403), ("file://", 403),
        ("chrome-extension://localhost", 403), ("http://user@localhost", 403), ("", 403), ("http://[", 403),
        ("http://localhost, http://evil.example", 403),
    ],
)  # fmt: skip
async def test_only_pages_that_the_gateway_itself_serves_may_call(client: AsgiClient, origin: str, status: int) -> None:
    async with client.stream("SendMessage", hello(), **V1, origin=origin) as reply:
        assert reply.status == status


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200), ("localhost:8000", 200), ("LOCALHOST", 200), ("127.0.0.1:8000", 200), ("[::1]:8000", 200),
        ("evil.example", 421), ("evil.example:8000", 421), ("127.0.0.1.evil.example", 421), ("localhost.evil.example", 421),
        ("", 421), ("[", 421), ("evil.example@localhost", 421), ("localhost:x", 421), ("0.0.0.0", 421), ("localhost evil", 421),
    ],
)  # fmt: skip
async def test_a_name_that_was_bound_to_a_local_address_later_is_refused(
    client: AsgiClient, host: str, status: int
) -> None:
    assert (await client.request("GET", CARD, headers={"host": host}))[0] == status


@pytest.mark.parametrize(
    ("given", "host", "status"),
    [
        ({"http_hosts": ["agent.example"]}, "agent.example:80", 200),
        ({"http_hosts": ["agent.example"]}, "localhost", 421),
        ({"http_hosts": ["*.example"]}, "a.b.example", 200),
        ({"http_hosts": ["*.example"]}, "example", 421),
        ({"http_hosts": ["*.example"]}, "evilexample", 421),
        ({"http_hosts": ["::1"]}, "[::1]:8000", 200),
        ({"http_hosts": ["[::1]"]}, "[::1]:8000", 200),
        ({"http_url": "https://agent.example/"}, "agent.example", 200),
        ({"http_url": "https://agent.example/"}, "other.example", 421),
    ],
)
async def test_names_of_the_gateway_come_from_its_settings(
    serve: Serve, given: dict[str, Any], host: str, status: int
) -> None:
    async with serve(**given) as client:
        assert (await client.request("GET", CARD, headers={"host": host}))[0] == status


@pytest.mark.parametrize(
    ("given", "address", "status"),
    [
        ({}, "127.0.0.1", 200), ({}, "127.9.9.9", 200), ({}, "::1", 200), ({}, "192.0.2.7", 403), ({}, "::ffff:192.0.2.7", 403),
        ({}, "0.0.0.0", 403), ({}, "", 200), ({"http_open": True}, "192.0.2.7", 200), ({"tokens": [f"ada:{'0' * 64}"]}, "192.0.2.7", 200),
    ],
)  # fmt: skip
async def test_without_identities_only_this_machine_is_answered(
    serve: Serve, given: dict[str, Any], address: str, status: int
) -> None:
    async with serve(**given) as client:
        client.client = address
        assert (await client.request("GET", CARD))[0] == status


async def test_the_gateway_answers_where_it_is_mounted_as_well() -> None:
    app = asgi(agent_of(), isolated=True, http_origins=[APP])
    async with app.lifespan():
        client = AsgiClient(app)
        headers = {"origin": APP, "a2a-version": "1.0"}
        async with client.open("GET", "/agent/tasks", headers=headers, root_path="/agent") as reply:
            assert (reply.status, reply.headers["access-control-allow-origin"]) == (200, APP)


async def test_hosts_and_origins_that_are_refused_are_logged_now_and_then_with_the_setting(
    serve: Serve, capfd: pytest.CaptureFixture[str]
) -> None:
    async with serve(log_format="json", log_level="warn") as client:
        for host in ("evil.example", "x.example"):
            await client.request("GET", CARD, headers={"host": host})
        for method, more in (("OPTIONS", PREFLIGHT), ("POST", JSON), ("POST", JSON)):
            await client.request(method, "/", b"{}", {"origin": EVIL + "x" * 5000, **more})
    host_refused, origin_refused = map(json.loads, capfd.readouterr().err.splitlines())
    assert host_refused["event"] == origin_refused["event"] == "http.request_refused"
    assert (host_refused["host"], "http-host" in host_refused["hint"]) == ("evil.example", True)
    assert origin_refused["origin"].startswith(EVIL)
    assert len(origin_refused["origin"]) < 300
    assert "http-origin" in origin_refused["hint"]


@pytest.mark.parametrize(
    "settings",
    [
        {"http_hosts": [host]}
        for host in ("agents.example:8000", "http://agents.example", "agents.example/a", "[::1]:8000")
    ]
    + [{"http_origins": [origin]} for origin in ("app.example", "https://app.example/page", "https://", "https://[")],
    ids=str,
)
def test_names_and_origins_that_fit_no_request_are_refused_with_the_argument(settings: dict[str, list[str]]) -> None:
    (argument,) = settings
    with pytest.raises(DeclarationError, match=f"^{argument} "):
        asgi(agent_of(), isolated=True, **settings)


@pytest.mark.parametrize(
    ("given", "local", "taken"),
    [
        ({}, False, False),
        ({"http_url": "https://agent.example/"}, False, True),
        ({"http_hosts": ("agent.example",)}, False, True),
        ({}, True, True),
    ],
)
def test_no_card_is_signed_for_an_address_that_a_caller_made_up(
    tmp_path: Path, given: dict[str, Any], local: bool, taken: bool
) -> None:
    pytest.importorskip("rfc8785")
    key = tmp_path / "key.pem"
    key.write_text(private_pem("P-256"))
    host = Host([], Settings(card_key=str(key), **given), version="1", agent=agent_of())
    refused = pytest.raises(AppError, match="--card-key .* needs --http-url, or --http-host")
    with nullcontext() if taken else refused:
        Gateway(host, local=local)
