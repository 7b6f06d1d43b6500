"""The page for people: a shell that is the same for everybody, and the last requests of whoever asks for them."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import anyio
import pytest

from discreet import Identity, OperationError, Service
from discreet.daemon.operations.access import Access, StaticTokens
from discreet.errors.codes import RESERVED_CODES
from discreet.gateway.page.recent_requests import MAX_CALLERS, MAX_REQUESTS, RecentRequests
from support.asgi_client import JSON, AsgiClient
from support.mcp_http import MODERN, McpHttp, begun
from support.vault import SECRET, digest

from ..conftest import Serve, agent_of
from ..test_jsonrpc import V1, hello

pytestmark = pytest.mark.anyio

OTHER_SECRET = "tok-another-one"
TOKENS = [f"ada:{digest(SECRET)}:books", f"bob:{digest(OTHER_SECRET)}"]
ADA, BOB = {"authorization": f"Bearer {SECRET}"}, {"authorization": f"Bearer {OTHER_SECRET}"}


class Torn(OperationError, code="TORN", http_status=409):
    """The page is torn."""


def book() -> Service:
    service = Service("book")

    @service.query(inline=True, errors=[Torn])
    def find(title: str) -> str:
        if title == "torn":
            raise Torn
        return title

    @service.query(scopes=["books"])
    def locked() -> str:
        return "open"

    @service.subscription()
    async def leaf() -> AsyncIterator[int]:
        yield 1
        await anyio.sleep_forever()

    return service


@pytest.fixture
async def client(serve: Serve) -> AsyncGenerator[AsgiClient]:
    """Of an agent and operations with a page, which know no callers."""
    async with serve(agent_of(), book(), http_page=True, http_operations=True) as found:
        yield found


async def page_of(client: AsgiClient) -> tuple[dict[str, str], str]:
    status, headers, body = await client.request("GET", "/")
    assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    return headers, body.decode("ascii")


async def requests_of(client: AsgiClient, **headers: str) -> list[dict[str, Any]]:
    async with client.open("GET", "/page/requests", b"", headers) as reply:
        assert (reply.status, reply.headers["cache-control"]) == (200, "no-store")
        found: list[dict[str, Any]] = (await reply.json())["requests"]
        return found


async def outcomes_of(client: AsgiClient, **headers: str) -> list[tuple[str, str]]:
    """Method and outcome of the last requests, in the order in which they ended."""
    return [(each["method"], each["outcome"]) for each in reversed(await requests_of(client, **headers))]


async def call(client: AsgiClient, name: str, body: bytes = b"{}", **headers: str) -> int:
    status, _, _ = await client.request("POST", f"/operations/{name}", body, {**JSON, **headers})
    return status


# -- the shell -----------------------------------------------------------------------------------------------------


async def test_without_the_setting_there_is_no_page_and_the_paths_are_those_of_a2a(serve: Serve) -> None:
    async with serve() as client:
        assert (await client.request("GET", "/"))[0] == 405
        assert (await client.request("GET", "/page/requests"))[0] == 404
        assert (await client.request("GET", "/page/tasks", headers={"a2a-version": "1.0"}))[0] == 200  # of a tenant


async def test_the_page_stands_at_the_root_beside_json_rpc(client: AsgiClient) -> None:
    await page_of(client)
    assert (await client.request("HEAD", "/"))[0] == 200
    answer = await client.call("SendMessage", hello(), **V1)
    assert answer["result"]["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
    status, headers, _ = await client.request("PUT", "/")
    assert (status, headers["allow"]) == (405, "GET, HEAD, POST")
    assert (await client.request("GET", "/tasks", headers={"a2a-version": "1.0"}))[0] == 200


async def test_the_policy_lets_in_the_pages_own_script_and_styles_alone(client: AsgiClient) -> None:
    headers, body = await page_of(client)
    directives = dict(each.split(" ", 1) for each in headers["content-security-policy"].split("; "))
    (script,) = re.findall(r"<script[^>]*>(.*?)</script>", body, re.DOTALL)
    (style,) = re.findall(r"<style[^>]*>(.*?)</style>", body, re.DOTALL)
    hashes = [base64.b64encode(hashlib.sha256(each.encode()).digest()).decode() for each in (script, style)]
    assert directives == {
        "default-src": "'none'",
        "script-src": f"'sha256-{hashes[0]}'",
        "style-src": f"'sha256-{hashes[1]}'",
        "img-src": "data:",
        "connect-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }
    markup = body.replace(script, "").replace(style, "")
    assert re.findall(r"\s(?:on\w+|style|src)=", markup) == []
    assert set(re.findall(r'href="([^#"]*)', markup)) == {"data:,", ""}
    assert (headers["x-content-type-options"], headers["referrer-policy"]) == ("nosniff", "no-referrer")
    assert headers["cross-origin-opener-policy"] == headers["cross-origin-resource-policy"] == "same-origin"


@pytest.mark.parametrize("settings", [{}, {"http_operations": True}])
async def test_the_page_is_small_and_the_same_for_everybody(serve: Serve, settings: dict[str, Any]) -> None:
    async with serve(agent_of(), http_page=True, **settings) as client:
        _, plain = await page_of(client)
    async with serve(
        agent_of(version="9.8.7"), book(), http_page=True, tokens=TOKENS, headers=ADA, **settings
    ) as client:
        _, known = await page_of(client)
        client.headers.pop("authorization")
        _, unknown = await page_of(client)
    assert plain == known == unknown
    assert len(plain) <= 78_000
    assert "9.8.7" not in plain
    assert "Echo" not in plain


async def test_a_browser_that_has_the_page_is_told_so_and_one_that_takes_gzip_gets_less(client: AsgiClient) -> None:
    headers, body = await page_of(client)
    assert headers["cache-control"] == "private, no-cache"
    status, again, nothing = await client.request("GET", "/", headers={"if-none-match": headers["etag"]})
    assert (status, again["etag"], nothing) == (304, headers["etag"], b"")
    _, packed, less = await client.request("GET", "/", headers={"accept-encoding": "gzip"})
    assert packed["content-encoding"] == "gzip"
    assert len(less) < len(body) / 2


async def test_the_page_knows_which_errors_every_operation_may_have(client: AsgiClient) -> None:
    _, body = await page_of(client)
    found = re.search(r"PROTOCOL_CODES = (\[.*?\]);", body)
    assert found is not None
    assert set(re.findall(r"[A-Z_]+", found[1])) == RESERVED_CODES


async def test_below_a_mount_the_page_is_served_too(client: AsgiClient) -> None:
    async with client.open("GET", "/below/", root_path="/below") as reply:
        assert (reply.status, reply.headers["content-type"]) == (200, "text/html; charset=utf-8")
    async with client.open("GET", "/below/page/requests", root_path="/below") as reply:
        assert reply.status == 200


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/page", 404), ("GET", "/page/", 404), ("GET", "/page/others", 404), ("GET", "/page/app", 404), ("POST", "/page/check", 404), ("GET", "/page/requests/1", 404),
     ("POST", "/page/requests", 405), ("DELETE", "/page/requests", 405)],
)  # fmt: skip
async def test_nothing_else_stands_below_its_paths(client: AsgiClient, method: str, path: str, status: int) -> None:
    assert (await client.request(method, path, b"", JSON))[0] == status


# -- the last requests -----------------------------------------------------------------------------------------------


async def test_requests_are_told_with_method_outcome_and_time_and_nothing_that_was_sent(client: AsgiClient) -> None:
    assert await requests_of(client) == []
    await client.call("SendMessage", hello("a secret"), call_id="secret id", **V1)
    await client.call("GetTask", {"id": "secret"}, **V1)
    await call(client, "book/find", b'{"title":"secret"}')
    await call(client, "book/find", b'{"title":"torn"}')
    await call(client, "book/find", b'{"secret":1}')
    _, _, body = await client.request("GET", "/page/requests")
    assert b"secret" not in body
    found = await requests_of(client)
    assert {frozenset(each) for each in found} == {frozenset({"at", "method", "outcome", "ms"})}
    assert all(each["ms"] >= 0 and each["at"] > 1_700_000_000 for each in found)
    assert await outcomes_of(client) == [
        ("SendMessage", "ok"),
        ("GetTask", "TASK_NOT_FOUND"),
        ("book/find", "ok"),
        ("book/find", "TORN"),
        ("book/find", "INVALID_INPUT"),
    ]


async def test_names_that_callers_make_up_and_those_that_they_may_not_call_are_not_kept(serve: Serve) -> None:
    async with serve(agent_of(), book(), http_page=True, http_operations=True, tokens=TOKENS) as client:
        await client.call("made/up", **V1, **BOB)
        await call(client, "book/locked", **BOB)
        found = await outcomes_of(client, **BOB)
        assert [method for method, _ in found] == ["other", "other"]
        assert "NOT_FOUND" in {outcome for _, outcome in found}
        await call(client, "book/locked", **ADA)
        assert await outcomes_of(client, **ADA) == [("book/locked", "ok")]


async def test_a_caller_sees_its_own_requests_alone(serve: Serve) -> None:
    async with serve(agent_of(), book(), http_page=True, http_operations=True, tokens=TOKENS) as client:
        for who in (ADA, BOB, ADA, {}, {"authorization": "Bearer wrong"}):
            await call(client, "book/find", b'{"title":"a"}', **who)
        assert len(await requests_of(client, **ADA)) == 2
        assert len(await requests_of(client, **BOB)) == 1


async def test_requests_of_mcp_and_what_is_refused_early_are_told_too(serve: Serve) -> None:
    served = {"http_page": True, "http_operations": True, "http_mcp": True}
    async with serve(agent_of(), book(), **served) as client:
        ours = await begun(client)
        await ours.call("book_find", title="a")
        await ours.call("book_find", title="torn")
        await ours.call("made_up")
        await ours.post("ping", mcp_session_id="secret")
        await McpHttp(client, MODERN).call("book_find", title="a")
        await call(client, "book/made_up")
        await call(client, "book/find", b"{")
        await client.request("POST", "/operations/book/find", b"{}", {"content-type": "text/plain"})
        await client.request("DELETE", "/operations/book/find")
        await client.request("POST", "/", b"{", JSON)
        await client.request("GET", "/made/up/secret")
        assert await outcomes_of(client) == [
            ("initialize", "ok"),
            ("book/find", "ok"),
            ("book/find", "TORN"),
            ("tools/call", "INVALID_INPUT"),
            ("other", "HTTP 404"),
            ("book/find", "ok"),
            ("other", "NOT_FOUND"),
            ("other", "PARSE_ERROR"),
            ("other", "INVALID_REQUEST"),
            ("other", "HTTP 405"),
            ("other", "PARSE_ERROR"),
            ("other", "HTTP 404"),
        ]


async def test_one_caller_with_many_requests_does_not_push_out_those_of_another(serve: Serve) -> None:
    async with serve(agent_of(), book(), http_page=True, http_operations=True, tokens=TOKENS) as client:
        await call(client, "book/find", b'{"title":"a"}', **ADA)
        for _ in range(MAX_REQUESTS + 1):
            await call(client, "book/find", b'{"title":"a"}', **BOB)
        assert [len(await requests_of(client, **who)) for who in (ADA, BOB)] == [1, MAX_REQUESTS]


def test_of_many_callers_those_who_called_last_are_kept() -> None:
    recent, access = RecentRequests(), Access(Identity("parent"), StaticTokens(()))
    callers = [access.for_caller(Identity(f"{number}")) for number in range(MAX_CALLERS + 1)]
    for caller in callers:
        recent.add(callers[0], "first", b"", 0.0)
        recent.add(caller, "other", b"", 0.0)
    assert [len(recent.of(caller)) for caller in callers[:3]] == [MAX_CALLERS + 2, 0, 1]


async def test_without_tokens_everybody_sees_all_requests(serve: Serve) -> None:
    async with serve(agent_of(), book(), http_page=True, http_operations=True, http_open=True) as client:
        for address in ("192.0.2.1", "192.0.2.2"):
            client.client = address
            await call(client, "book/find", b'{"title":"a"}')
        assert len(await requests_of(client)) == 2


async def test_the_last_hundred_are_kept_the_newest_first(client: AsgiClient) -> None:
    await call(client, "book/locked")
    for _ in range(MAX_REQUESTS):
        await call(client, "book/find", b'{"title":"a"}')
    await call(client, "book/find", b'{"title":"torn"}')
    found = await requests_of(client)
    assert (len(found), found[0]["outcome"], found[-1]["method"]) == (MAX_REQUESTS, "TORN", "book/find")
    assert [each["at"] for each in found] == sorted((each["at"] for each in found), reverse=True)


async def test_a_stream_is_told_when_it_has_ended(client: AsgiClient) -> None:
    async with client.open("POST", "/operations/book/leaf", b"{}", JSON) as reply:
        await reply.chunk()
        assert await requests_of(client) == []
    assert await outcomes_of(client) == [("book/leaf", "CANCELLED")]
    async with client.stream("SendStreamingMessage", hello(), **V1) as reply:
        await reply.body()
    assert (await outcomes_of(client))[-1] == ("SendStreamingMessage", "ok")


async def test_a_page_of_an_allowed_origin_gets_no_more_than_any_other_caller(serve: Serve) -> None:
    async with serve(http_page=True, http_origins=["https://app.example"], tokens=TOKENS) as client:
        status, headers, _ = await client.request("GET", "/page/requests", headers={"origin": "https://app.example"})
        assert (status, headers["access-control-allow-origin"]) == (401, "https://app.example")
