"""The page of a bridge: what servers write to stderr, without secrets and within bounds, and the start anew."""

from __future__ import annotations

import json
import sys

import pytest

from discreet.bridge import MAX_LINES, ServerLog
from discreet.imports.targets import Command
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
        assert len(body) <= 110_000
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
        assert (await client.request("GET", "/page/log", headers=known))[0] == 200
        assert (await client.request("POST", "/page/restart", headers=known))[0] == 204
