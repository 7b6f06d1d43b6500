"""The page of a bridge: what servers write to stderr, without secrets and within bounds, and the start anew."""

from __future__ import annotations

import json
import sys

import pytest

from discreet.bridge import MAX_LINES, ServerLog
from discreet.imports.targets import Command
from support.asgi_client import JSON, AsgiClient
from support.mcp_http import McpHttp
from support.vault import SECRET, digest
from support.waits import until

from .conftest import RELAYED, Bridged

NOISY = Command(
    (
        sys.executable,
        "-c",
        f"import runpy, sys; print('token=k7Qzp2LwX9', file=sys.stderr); runpy.run_path({str(RELAYED)!r})",
    )
)
"""The same server, which says something first."""

pytestmark = pytest.mark.anyio


def test_the_last_lines_are_kept_without_secrets() -> None:
    log = ServerLog()
    log.add("password=k7Qzp2LwX9")
    assert log.after(0) == (1, ["password=<redacted>"])
    for number in range(MAX_LINES + 5):
        log.add(str(number))
    last, lines = log.after(0)
    assert (last, len(lines), lines[-1]) == (MAX_LINES + 6, MAX_LINES, str(MAX_LINES + 4))
    assert log.after(last - 2)[1] == lines[-2:]
    assert log.after(last)[1] == []
    assert log.after(last + 9)[1] == lines  # that number is of an earlier log


async def test_a_bridge_without_a_log_has_the_page_and_tells_no_lines(bridged: Bridged) -> None:
    async with bridged(http_page=True) as client:
        status, _, body = await client.request("GET", "/")
        assert (status, b"HAS_LOG = false" in body) == (200, True)
        assert len(body) <= 120_000
        assert (await client.request("GET", "/page/log"))[0] == 404
        assert (await client.request("POST", "/page/restart"))[0] == 404


async def test_lines_are_told_by_number_and_a_restart_ends_the_server(bridged: Bridged) -> None:
    async with bridged(NOISY, share=True, server_log=ServerLog(), http_page=True) as client:
        http = McpHttp(client)
        first = (await http.begin()).result["pid"]

        async def lines_after(number: int) -> dict[str, object]:
            status, headers, body = await client.request("GET", f"/page/log?after={number}")
            assert (status, headers["cache-control"]) == (200, "no-store")
            found: dict[str, object] = json.loads(body)
            return found

        async def is_heard() -> object:
            return (await lines_after(0))["lines"]

        async def has_ended() -> bool:
            return (await http.post("do/seen", {})).status == 404

        await until(is_heard)
        assert await lines_after(0) == {"last": 1, "lines": ["token=<redacted>"]}
        assert await lines_after(1) == {"last": 1, "lines": []}
        assert (await client.request("GET", "/page/log?after=-1x"))[0] == 200
        assert (await client.request("GET", "/page/restart"))[0] == 405
        assert (await client.request("POST", "/page/restart"))[0] == 204
        await until(has_ended)
        again = McpHttp(client)
        assert (await again.begin()).result["pid"] != first


async def test_the_log_and_the_restart_are_for_known_callers(bridged: Bridged) -> None:
    tokens = (f"ada:{digest(SECRET)}",)
    async with bridged(server_log=ServerLog(), http_page=True, tokens=tokens) as client:
        assert (await client.request("GET", "/"))[0] == 200
        assert (await client.request("GET", "/page/log"))[0] == 401
        assert (await client.request("POST", "/page/restart"))[0] == 401
        known = {"authorization": f"Bearer {SECRET}"}
        assert (await client.request("POST", "/page/check", b"{}", JSON))[0] == 401
        assert (await client.request("GET", "/page/log", headers=known))[0] == 200
        assert (await client.request("POST", "/page/restart", headers=known))[0] == 204


# -- apps ----------------------------------------------------------------------------------------------------------


async def policy_of(client: AsgiClient, query: str) -> dict[str, str]:
    """The directives for an app whose resource declares these origins."""
    status, headers, body = await client.request("GET", f"/page/app?{query}")
    assert (status, headers["content-type"], b"<script>" in body) == (200, "text/html; charset=utf-8", True)
    return dict(each.partition(" ")[::2] for each in headers["content-security-policy"].split("; "))


async def test_an_app_loads_what_its_resource_declares_and_is_always_in_a_sandbox(bridged: Bridged) -> None:
    async with bridged(http_page=True) as client:
        strict = await policy_of(client, "")
        assert strict == {
            "default-src": "'none'",
            "script-src": "'unsafe-inline'",
            "style-src": "'unsafe-inline'",
            "img-src": "data:",
            "media-src": "data:",
            "font-src": "'none'",
            "connect-src": "'none'",
            "frame-src": "'none'",
            "base-uri": "'none'",
            "form-action": "'none'",
            "frame-ancestors": "'self'",
            "sandbox": "allow-scripts allow-forms",
        }
        query = "connectDomains=wss://a.example:1&connectDomains=https://b.example&resourceDomains=https://*.c.example"
        assert await policy_of(client, query) == {
            **strict,
            "connect-src": "wss://a.example:1 https://b.example",
            "script-src": "https://*.c.example 'unsafe-inline'",
            "style-src": "https://*.c.example 'unsafe-inline'",
            "img-src": "https://*.c.example data:",
            "media-src": "https://*.c.example data:",
            "font-src": "https://*.c.example",
        }
        assert (await client.request("POST", "/page/app", b"{}", JSON))[0] == 405


@pytest.mark.parametrize(
    "origin",
    ["*", "'self'", "'unsafe-eval'", "https:", "data:", "https://a.example; sandbox", "https://a.example, x",
     "https://a.example%20*", "https://a.example%0d%0ax: y", ""],
)  # fmt: skip
async def test_what_is_no_origin_is_refused_by_the_name_of_its_member(bridged: Bridged, origin: str) -> None:
    async with bridged(http_page=True) as client:
        status, _, body = await client.request("GET", f"/page/app?frameDomains=https://a.example&frameDomains={origin}")
        assert status == 400
        assert json.loads(body)["details"]["param"] == "csp.frameDomains[1]"


NUMBER = {"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"], "additionalProperties": False}


@pytest.mark.needs("jsonschema_rs")
@pytest.mark.parametrize(
    ("schema", "value", "told"),
    [
        (NUMBER, {"n": 1.5}, {}),
        (NUMBER, {"n": "1"}, {"path": "n", "expected": "number", "received": "string"}),
        (NUMBER, {}, {"path": "n", "expected": "number", "received": "missing"}),
        (NUMBER, {"n": 1, "more": 2}, {"path": "more", "expected": "one of n", "received": "unknown field"}),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"A": NUMBER}, "$ref": "#/definitions/A"},
         {"n": None}, {"path": "n", "expected": "number", "received": "null"}),
        ({"$ref": "http://127.0.0.1:9/schema"}, 1,
         {"unchecked": "http://127.0.0.1:9/schema is another document, and only references within this one are followed"}),
        ({"$ref": "#/$defs/none"}, 1, {"unchecked": "#/$defs/none refers to nothing"}),
    ],
)  # fmt: skip
async def test_what_a_tool_gives_is_checked_against_its_schema(
    bridged: Bridged, schema: object, value: object, told: dict[str, str]
) -> None:
    async with bridged(http_page=True) as client:
        body = json.dumps({"schema": schema, "value": value}).encode()
        status, headers, found = await client.request("POST", "/page/check", body, JSON)
        assert (status, headers["cache-control"], json.loads(found)) == (200, "no-store", told)


async def test_a_check_takes_a_schema_and_a_value(bridged: Bridged) -> None:
    async with bridged(http_page=True) as client:
        assert (await client.request("GET", "/page/check"))[0] == 405
        for body in (b"{", b"{}", b'{"schema": 1, "value": 1}'):
            assert (await client.request("POST", "/page/check", body, JSON))[0] == 400
