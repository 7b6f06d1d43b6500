"""What operations answer by HTTP beside results: events that resume, tags, compression, and the OpenAPI document."""

from __future__ import annotations

import gzip
import json
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import anyio
import msgspec
import pytest

from discreet import Context, Identity, OperationError, ServerEvent, Service
from discreet.daemon.operations.service import Changes
from discreet.gateway.answers import IN_A_THREAD, SMALLEST, takes_gzip
from discreet.gateway.operations import MAX_DOCUMENTS
from support.asgi_client import JSON, AsgiClient
from support.mcp_http import MODERN, McpHttp, begun, first
from support.waits import DEADLINE_SECONDS

from .conftest import Serve
from .test_operations import ADA, BOB, TOKENS, get, post, shop

pytestmark = pytest.mark.anyio


class Stopped(OperationError, code="STOPPED", http_status=410):
    """It has stopped."""

    at: int


class Clock:
    """A source of numbered events, and what the last subscriber of it asked for."""

    def __init__(self) -> None:
        self.after: int | None = None
        self.going = anyio.Event()
        self.ended = anyio.Event()
        self.service = service = Service("clock")

        @service.subscription(errors=[Stopped])
        async def ticks(ctx: Context, until: int, stop: int = 99) -> AsyncIterator[ServerEvent[str]]:
            self.after = ctx.last_event_id
            for number in range((self.after or 0) + 1, until + 1):
                if number == stop:
                    raise Stopped(at=number)
                yield ServerEvent(f"tick {number}", id=number)

        @service.subscription()
        async def plain(count: int) -> AsyncIterator[int]:
            for number in range(count):
                yield number

        @service.subscription()
        async def silent() -> AsyncIterator[int]:
            try:
                await self.going.wait()
                yield 1
            finally:
                self.ended.set()

        @service.subscription()
        async def odd() -> AsyncIterator[ServerEvent[int]]:
            yield ServerEvent(1, id="one")  # type: ignore[arg-type]


@pytest.fixture
async def client(serve: Serve) -> AsyncGenerator[AsgiClient]:
    """Of the library and a clock."""
    async with serve(library(), Clock().service, http_operations=True) as found:
        yield found


async def events(client: AsgiClient, name: str, params: Any, **headers: str) -> list[tuple[str, str, Any]]:
    """The name, the id and the data of each event of a whole stream."""
    body = json.dumps(params).encode()
    status, told, answer = await client.request("POST", f"/operations/{name}", body, {**JSON, **headers})
    assert (status, told["content-type"]) == (200, "text/event-stream; charset=utf-8")
    found = []
    for event in answer.decode().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in event.splitlines() if not line.startswith(":"))
        if "data" in fields:
            found.append((fields.get("event", ""), fields.get("id", ""), json.loads(fields["data"])))
    return found


async def test_events_come_one_by_one_and_the_end_is_told(client: AsgiClient) -> None:
    assert await events(client, "clock/plain", {"count": 2}) == [
        ("", "", 0),
        ("", "", 1),
        ("completed", "", {"completed": True, "events": 2}),
    ]


async def test_numbered_events_are_resumed_behind_the_last_one(serve: Serve) -> None:
    clock = Clock()
    async with serve(clock.service, http_operations=True) as client:
        whole = await events(client, "clock/ticks", {"until": 3})
        assert [number for _, number, _ in whole] == ["1", "2", "3", ""]
        assert clock.after is None
        rest = await events(client, "clock/ticks", {"until": 3}, **{"last-event-id": "2"})
        assert rest[:-1] == whole[2:-1]
        assert clock.after == 2
        clock.after = None
        for wrong in ("two", "-1", "", "1.0", "1" * 19):
            status, _, error = await post(client, "clock/ticks", {"until": 3}, **{"last-event-id": wrong})
            assert (status, error["details"]["param"], clock.after) == (400, "Last-Event-ID", None)


async def test_an_error_before_the_first_event_is_a_response_and_a_later_one_the_last_event(client: AsgiClient) -> None:
    expected = {"code": "STOPPED", "message": "It has stopped", "retryable": False, "details": {"at": 1}}
    status, headers, error = await post(client, "clock/ticks", {"until": 3, "stop": 1})
    assert (status, headers["content-type"], error) == (410, "application/json", expected)
    assert await events(client, "clock/ticks", {"until": 3, "stop": 2}) == [
        ("", "1", "tick 1"),
        ("error", "", {**expected, "details": {"at": 2}}),
    ]
    assert (await post(client, "clock/ticks", {"until": "x"}))[0] == 400
    assert (await get(client, "clock/ticks", "until=3"))[0] == 405


async def test_a_number_that_is_none_is_a_fault_of_the_handler(client: AsgiClient) -> None:
    status, _, error = await post(client, "clock/odd")
    assert (status, error["code"]) == (500, "INTERNAL")


@pytest.mark.parametrize("by_mcp", [False, True])
async def test_a_handler_that_never_waits_ends_with_its_client(serve: Serve, by_mcp: bool) -> None:
    service, ended = Service("clock"), anyio.Event()

    @service.subscription()
    async def flood() -> AsyncIterator[int]:
        try:
            while True:
                yield 1
        finally:
            ended.set()

    async with serve(service, http_operations=True, http_mcp=True) as client:
        params = {"name": "clock_flood", "arguments": {}, "_meta": {"progressToken": "t"}}
        ours = McpHttp(client, MODERN).open("tools/call", params)
        async with ours if by_mcp else client.open("POST", "/operations/clock/flood", b"{}", JSON) as reply:
            await reply.chunk()
        with anyio.fail_after(DEADLINE_SECONDS):
            await ended.wait()


async def test_a_silent_stream_is_kept_open_and_ends_with_its_client(serve: Serve) -> None:
    clock = Clock()
    async with serve(clock.service, http_operations=True, http_keep_alive=0.05) as client:
        async with client.open("POST", "/operations/clock/silent", b"{}", JSON) as reply:
            assert reply.status == 200
            assert (await reply.chunk()).startswith(b":")
        with anyio.fail_after(5):
            await clock.ended.wait()


# -- what the client has already, and what it takes ------------------------------------------------------------------


def library() -> Service:
    service = Service("library")
    service.version = "3"

    @service.query(etag=True)
    def page(number: int) -> str:
        return "x" * number

    @service.query()
    def large(size: int) -> str:
        return "ab" * (size // 2)

    @service.mutation()
    def store(text: str) -> str:
        return text

    return service


async def test_a_result_with_a_tag_is_not_sent_twice(client: AsgiClient) -> None:
    status, headers, result = await get(client, "library/page", "number=3")
    tag = headers["etag"]
    assert (status, result, headers["cache-control"]) == (200, "xxx", "private, no-cache")
    for known in (tag, f'"other", {tag}', tag.removeprefix("W/"), "*"):
        status, headers, result = await get(client, "library/page", "number=3", **{"if-none-match": known})
        assert (status, headers["etag"], result) == (304, tag, None)
    for known in ('"other"', "", "W/", "x"):
        assert (await get(client, "library/page", "number=3", **{"if-none-match": known}))[0] == 200
    other = await get(client, "library/page", "number=4", **{"if-none-match": tag})
    assert (other[0], other[1]["etag"] != tag) == (200, True)


async def test_only_results_that_are_asked_for_by_get_have_tags(client: AsgiClient) -> None:
    assert "etag" not in (await post(client, "library/page", {"number": 3}))[1]
    assert "etag" not in (await get(client, "library/large", "size=3"))[1]
    status, headers, _ = await get(client, "library/page", "number=x")
    assert (status, "etag" in headers) == (400, False)


@pytest.mark.parametrize("size", [SMALLEST - 2, IN_A_THREAD + 100])
async def test_an_answer_is_compressed_from_one_kilobyte_on(client: AsgiClient, size: int) -> None:
    for verb, path, body in (
        ("GET", f"/operations/library/large?size={size}", b""),
        ("POST", "/operations/library/large", json.dumps({"size": size}).encode()),
    ):
        headers = {**JSON, "accept-encoding": "br, gzip"}
        status, told, answer = await client.request(verb, path, body, headers)
        assert (status, told["content-encoding"], told["vary"]) == (200, "gzip", "accept-encoding")
        assert told["content-length"] == str(len(answer))
        assert json.loads(gzip.decompress(answer)) == "ab" * (size // 2)
        status, told, answer = await client.request(verb, path, body, JSON)
        assert (told["vary"], "content-encoding" in told) == ("accept-encoding", False)
        assert json.loads(answer) == "ab" * (size // 2)


async def test_small_answers_and_streams_are_not_compressed(client: AsgiClient) -> None:
    takes = {"accept-encoding": "gzip"}
    _, headers, result = await get(client, "library/large", f"size={SMALLEST - 4}", **takes)
    assert (len(result), headers.keys() & {"content-encoding", "vary"}) == (SMALLEST - 4, set())
    assert len(await events(client, "clock/plain", {"count": 500}, **takes)) == 501


@pytest.mark.parametrize(
    ("header", "takes"),
    [
        ("gzip", True),
        ("br;q=1.0, GZIP ; q=0.5", True),
        ("*", True),
        ("x-gzip", True),
        ("", False),
        ("gzip;q=0.000, *", False),
        ("*;q=0", False),
        ("gzip;q=0.001", True),
        ("gzipped", False),
    ],
)
def test_who_takes_gzip(header: str, takes: bool) -> None:
    assert takes_gzip(header) is takes


# -- the document --------------------------------------------------------------------------------------------------


async def document(client: AsgiClient, **headers: str) -> Any:
    status, told, body = await client.request("GET", "/openapi.json", headers=headers)
    assert (status, told["content-type"]) == (200, "application/json")
    return json.loads(body)


async def test_the_document_says_what_the_caller_may_call(serve: Serve) -> None:
    async with serve(shop(), tokens=TOKENS, http_operations=True) as client:
        for headers, may_buy in ((BOB, False), (ADA, True), (BOB, False)):
            found = await document(client, **headers)
            assert ("/operations/shop/buy" in found["paths"]) is may_buy
            assert "/operations/shop/get" in found["paths"]
            assert "/operations/shop/hidden" not in found["paths"]
            assert found["components"]["securitySchemes"] == {"bearer": {"type": "http", "scheme": "bearer"}}


async def test_callers_with_other_scopes_never_get_each_other_s_document(serve: Serve) -> None:
    class ByScope:
        schemes = ("bearer",)
        realm = "scopes"

        def resolve(self, authorization: str) -> Identity:
            return Identity("somebody", frozenset(authorization.removeprefix("Bearer ").split("+")))

    service, names = Service("s"), [f"op{number}" for number in range(MAX_DOCUMENTS + 3)]
    for name in names:
        service.query(name=name, scopes=[name])(lambda: None)
    async with serve(service, provider=ByScope(), http_operations=True) as client:
        for name in [*names, names[0], names[-1], names[0]]:
            found = await document(client, authorization=f"Bearer {name}")
            assert list(found["paths"]) == [f"/operations/s/{name}"]
        found = await document(client, authorization=f"Bearer {names[0]}+{names[1]}")
        assert len(found["paths"]) == 2


async def test_the_server_is_where_the_client_asks_or_what_the_setting_says(client: AsgiClient, serve: Serve) -> None:
    assert (await document(client))["servers"] == [{"url": "http://localhost"}]
    assert (await document(client, host="127.0.0.1:8000"))["servers"] == [{"url": "http://127.0.0.1:8000"}]
    found = await document(client)
    assert (found["info"], found["openapi"][:4]) == ({"title": "library, clock", "version": "3"}, "3.1.")
    async with serve(library(), http_operations=True, http_url="https://a.example/api/") as elsewhere:
        assert (await document(elsewhere))["servers"] == [{"url": "https://a.example/api"}]


async def test_the_document_has_a_tag_and_is_compressed(client: AsgiClient) -> None:
    status, headers, body = await client.request("GET", "/openapi.json", headers={"accept-encoding": "gzip"})
    assert (status, headers["content-encoding"]) == (200, "gzip")
    plain = (await client.request("GET", "/openapi.json"))[2]
    assert gzip.decompress(body) == plain
    again = await client.request("GET", "/openapi.json", headers={"accept-encoding": "gzip"})
    assert (again[1]["content-encoding"], again[1]["content-length"], again[2]) == ("gzip", str(len(body)), body)
    status, told, rest = await client.request("GET", "/openapi.json", headers={**again[1], "if-none-match": "*"})
    assert (status, "content-encoding" in told, rest) == (304, False, b"")
    known = {"if-none-match": headers["etag"]}
    assert (await client.request("GET", "/openapi.json", headers=known))[0] == 304
    assert (await client.request("GET", "/openapi.json", headers={**known, "host": "127.0.0.1"}))[0] == 200


async def test_the_document_takes_no_other_verb_and_has_nothing_below_it(client: AsgiClient) -> None:
    status, headers, _ = await client.request("POST", "/openapi.json", b"{}", JSON)
    assert (status, headers["allow"]) == (405, "GET, HEAD")
    assert (await client.request("GET", "/openapi.json/more"))[0] == 404


# -- Operations that are replaced while they are served, as clients of HTTP see them --


def with_query(name: str) -> Service:
    service = Service("a")

    @service.query(name=name)
    async def handler() -> str:
        return name

    service.changes = Changes()
    return service


def replace(service: Service, name: str) -> None:
    assert service.changes is not None
    service.operations = with_query(name).operations
    service.changes.announce()


async def test_their_paths_and_the_document_are_those_of_now(serve: Serve) -> None:
    service = with_query("one")
    async with serve(service, http_operations=True) as client:

        async def seen() -> tuple[list[int], Any]:
            statuses = [(await client.request("GET", f"/operations/a/{name}"))[0] for name in ("one", "two")]
            document = msgspec.json.decode((await client.request("GET", "/openapi.json"))[2])
            return statuses, list(document["paths"])

        assert await seen() == ([200, 404], ["/operations/a/one"])
        replace(service, "two")
        assert await seen() == ([404, 200], ["/operations/a/two"])


async def test_the_document_is_made_anew_also_where_the_names_stay(serve: Serve) -> None:
    service = with_query("one")
    async with serve(service, http_operations=True) as client:
        before = (await client.request("GET", "/openapi.json"))[2]
        assert (await client.request("GET", "/openapi.json"))[2] == before
        other = with_query("one")
        assert service.changes is not None
        service.operations = [msgspec.structs.replace(other.operations[0], description="Another one.")]
        service.changes.announce()
        assert b"Another one." in (await client.request("GET", "/openapi.json"))[2]


async def test_sessions_of_mcp_are_told_on_their_streams(serve: Serve) -> None:
    service = with_query("one")
    async with serve(service, http_mcp=True, http_keep_alive=0.05) as client:
        ours = await begun(client)
        async with ours.listen(accept="text/event-stream") as reply:
            replace(service, "two")
            told = [message for _, message in await first(reply)]
        assert [each["method"] for each in told] == ["notifications/tools/list_changed"]
        listed = (await ours.post("tools/list")).result["tools"]
        assert [each["name"] for each in listed] == ["a_two"]
        assert (await ours.call("a_two")).result["content"][0]["text"] == "two"
        assert (await ours.call("a_one")).json["error"]["code"] == -32602
