"""What callers get for a response: by the declared status and media type."""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from typing import Any, cast

import pytest
from msgspec import Raw

from discreet.errors import Failure, FailureError, Internal, Overloaded, Unavailable
from discreet.imports.http.model import Reply
from discreet.imports.http.upstream import HttpLimits
from discreet.imports.model import UpstreamError
from support.logged_events import LoggedEvents
from support.raw_upstream import answering, called, context, opened, operation, response

pytestmark = pytest.mark.anyio


def reply(status: str, code: str = "", **forms: str) -> Reply:
    """`application_json="json"` is the form of `application/json`."""
    return Reply(status, cast(Any, {name.replace("_", "/"): form for name, form in forms.items()}), code)


async def result(answer: bytes, *replies: Reply, method: str = "GET") -> Raw:
    """What one call returns or raises. An exception that passed the server's block would come out of its task group."""
    outcome: Raw | Exception
    async with answering(answer) as server:
        try:
            outcome = await called(server.url, operation(method, replies=replies))
        except (FailureError, UpstreamError) as exc:
            outcome = exc
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


JSON = reply("200", application_json="json")


@pytest.mark.parametrize(
    ("text", "passed"),
    [
        (b'{"a": 1.000, "b": 123456789012345678901234567890, "c": 1e999}', None),
        (b'{"a":1,"a":2}', None),
        ('"é"'.encode(), None),
        (b'\xef\xbb\xbf{\r\n "a": 1.00\n}\n', b'{"a":1.00}'),  # in one line, and without a byte order mark
    ],
)
async def test_json_is_passed_on_as_it_is(text: bytes, passed: bytes | None) -> None:
    assert bytes(await result(response(text), JSON)) == (passed or text)


@pytest.mark.parametrize(
    "text", [b"", b"{", b"NaN", b"{'a':1}", b'"\xff"', b'"\\ud800"', b"1 2", b"<html>", b"[" * 100_000]
)
async def test_what_is_no_json_is_internal_and_logged_without_it(text: bytes, logged: LoggedEvents) -> None:
    with pytest.raises(FailureError) as caught:
        await result(response(text), JSON)
    assert caught.value.failure == Internal()
    [(event, fields)] = logged()
    host = fields.pop("host")
    told = {"import_": "shop", "operation": "op", "reason": "json", "status": 200, "told": "INTERNAL"}
    assert (event, fields, host[:9]) == ("import.failed", told, "127.0.0.1")


@pytest.mark.parametrize(
    ("answer", "declared", "text"),
    [
        (response(b"hi", content_type="text/plain"), reply("200", text_plain="text"), '"hi"'),
        (response("é€".encode("cp1252"), content_type="text/plain; charset=ISO-8859-1"), reply("200", text_plain="text"), '"é€"'),
        (response("é".encode("utf-16"), content_type='text/csv; charset="utf-16"'), JSON, None),
        (response("é".encode("utf-16"), content_type='text/csv; charset="utf-16"'), reply("200", **{"text_*": "text"}), '"é"'),
        (response(b"\0\xff", content_type="image/png"), reply("200", **{"image_*": "binary"}), f'"{b64encode(bytes([0, 255])).decode()}"'),
        (response(b"1", content_type="application/vnd.x+json; v=1"), JSON, "1"),
        (response(b"1", content_type="APPLICATION/JSON"), JSON, "1"),
        (response(b"1", content_type="application/json"), reply("2XX", **{"*_*": "json"}), "1"),
        (response(b"1", content_type="application/json"), reply("200", application_json="text", **{"*_*": "json"}), '"1"'),
        (response(b"1", content_type="text/html"), JSON, None),
        (response(b"\xff", content_type="text/plain"), reply("200", text_plain="text"), None),
        (response(b"1", content_type="text/plain; charset=rot13"), reply("200", text_plain="text"), None),
        (response(b"ignored", content_type="text/html"), reply("200"), "null"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", JSON, "null"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", reply("2XX", application_json="json", text_plain="text"), "null"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1", reply("2XX", application_json="json", text_plain="text"), None),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1", JSON, "1"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", reply("204"), "null"),
        (b"HTTP/1.1 204 No Content\r\nContent-Type: application/json\r\n\r\n", reply("2XX", application_json="json"), "null"),
        (response(b"1", status=201), reply("default", "HTTP_DEFAULT", application_json="json"), "1"),
    ],
)  # fmt: skip
async def test_the_media_type_says_what_a_result_is(answer: bytes, declared: Reply, text: str | None) -> None:
    if text is None:
        with pytest.raises(FailureError) as caught:
            await result(answer, declared)
        assert caught.value.failure == Internal()
    else:
        assert json.loads(bytes(await result(answer, declared))) == json.loads(text)


async def test_the_answer_to_head_has_no_body_and_its_connection_goes_on() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99999999\r\n\r\n"
    described = operation("HEAD", replies=(JSON,))
    async with answering(head) as server, opened(described, url=server.url) as upstream:
        for _ in range(2):
            assert bytes(await upstream.call(described, {}, context())) == b"null"
        assert (server.connections, [each.method for each in server.requests]) == (1, ["HEAD"] * 2)


async def test_compressed_json_is_read_also_in_several_members() -> None:
    text = json.dumps(list(range(10_000))).encode()
    packed = gzip.compress(text[:5000]) + gzip.compress(text[5000:])
    assert bytes(await result(response(packed, "Content-Encoding: gzip"), JSON)) == text


@pytest.mark.parametrize(
    ("status", "code"), [(404, "HTTP_404"), (418, "HTTP_4XX"), (500, "HTTP_DEFAULT"), (302, "HTTP_DEFAULT")]
)
async def test_a_declared_status_is_its_error_the_nearest_declaration_counts(
    status: int, code: str, logged: LoggedEvents
) -> None:
    replies = (
        JSON,
        reply("default", "HTTP_DEFAULT", application_json="json"),
        reply("4XX", "HTTP_4XX", application_json="json"),
        reply("404", "HTTP_404", application_json="json"),
    )
    with pytest.raises(UpstreamError) as caught:
        await result(response(b'{"why": 1}', status=status), *replies)
    details = caught.value.details
    assert (caught.value.code, details and bytes(details), caught.value.retry_after_ms) == (code, b'{"why": 1}', None)
    assert logged() == []


@pytest.mark.parametrize(
    ("said", "least", "most"),
    [
        ("3", 3000, 3000),
        ("Wed, 21 Oct 2099 07:28:00 GMT", 10**9, 10**12),
        ("soon", None, None),
        ("9" * 30, 0, 10**12),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0, 0),
    ],
)
async def test_retry_after_is_told_in_milliseconds(said: str, least: int | None, most: int | None) -> None:
    with pytest.raises(UpstreamError) as caught:
        await result(
            response(b"{}", f"Retry-After: {said}", status=503), reply("503", "HTTP_503", application_json="json")
        )
    told = caught.value.retry_after_ms
    if least is None or most is None:
        assert told is None
    else:
        assert told is not None and least <= told <= most


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (response(b"<html>", status=502, content_type="text/html"), "content-type"),
        (response(b"{", status=502), "json"),
        (response(b"x" * 2000, status=502), "too-large"),
        (response(b"", "Content-Encoding: br", status=502), "encoding"),
    ],
)
async def test_details_that_can_not_be_read_are_left_out_and_the_log_says_so(
    answer: bytes, reason: str, logged: LoggedEvents
) -> None:
    declared = operation(replies=(JSON, reply("502", "HTTP_502", application_json="json")))
    async with answering(answer) as server:
        with pytest.raises(UpstreamError) as caught:
            await called(server.url, declared, limits=HttpLimits(response_bytes=1000))
    assert (caught.value.code, caught.value.details) == ("HTTP_502", None)
    assert [(event, fields["reason"], fields["status"]) for event, fields in logged()] == [
        ("import.details_unreadable", reason, 502)
    ]


@pytest.mark.parametrize(
    ("status", "failure", "fields"),
    [
        *((status, Internal(), ()) for status in (201, 304)),
        *((status, Internal(f"HTTP_{status}"), ()) for status in (400, 401, 500, 504, 599)),
        (429, Overloaded(), ()),
        (429, Overloaded(3000), ("Retry-After: 3",)),
        (503, Unavailable(upstream=True), ()),
        (503, Unavailable(3000, upstream=True), ("Retry-After: 3",)),
    ],
)
async def test_an_undeclared_status_has_its_code_and_its_time_to_wait_and_nothing_of_the_body(
    status: int, failure: Failure, fields: tuple[str, ...], logged: LoggedEvents
) -> None:
    with pytest.raises(FailureError) as caught:
        await result(response(b"" if status == 304 else b'{"secret": "text"}', *fields, status=status), JSON)
    assert caught.value.failure == failure
    [(event, told)] = logged()
    assert (event, told["reason"], told["status"]) == ("import.failed", "status", status)
    assert "secret" not in repr(told)


async def test_what_is_accepted_is_what_is_declared() -> None:
    described = operation(
        replies=(
            reply("200", application_json="json", **{"text_event-stream": "events"}),
            reply("400", "HTTP_400", **{"application_problem+json": "json"}),
        )
    )
    async with answering(response(b"1")) as server, opened(described, url=server.url) as upstream:
        await upstream.call(described, {}, context())
        [request] = server.requests
        assert request.values("accept") == ["application/json, application/problem+json;q=0.9"]
        assert request.values("host") == [server.url.removeprefix("http://")]
        assert request.values("accept-encoding") == ["gzip"]
