"""Operations by plain HTTP: verbs, statuses, bodies, queries, who may call what."""

from __future__ import annotations

import datetime
import decimal
import json
from collections.abc import AsyncGenerator
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

import anyio
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta

from discreet import Context, OperationError, Service
from discreet.agents import ApiKey, requires
from discreet.daemon.operations.params import InputModel, build_input
from discreet.gateway.operations import with_whole_numbers
from support.asgi_client import JSON, AsgiClient
from support.logged_events import logged_events
from support.vault import SECRET, digest

from .conftest import Serve, agent_of

pytestmark = pytest.mark.anyio


ADA = {"authorization": f"Bearer {SECRET}"}
BOB = {"authorization": "Bearer other-token"}
TOKENS = (f"ada:{digest(SECRET)}:shop:buy", f"bob:{digest('other-token')}")


class Item(msgspec.Struct):
    name: str
    price: int = 1


class Unknown(OperationError, code="UNKNOWN_ITEM", http_status=404):
    """There is no such item."""

    name: str


class SoldOut(OperationError, code="SOLD_OUT", http_status=409, retryable=True):
    """Nothing is left."""

    retryAfterMs: int  # noqa: N815


class Undeclared(OperationError, code="UNDECLARED"):
    """Nobody expects it."""


def shop() -> Service:
    service = Service("shop")

    @service.query(errors=[Unknown])
    async def get(name: str) -> Item:
        if name == "nothing":
            raise Unknown(name=name)
        return Item(name)

    @service.mutation(scopes=["shop:buy"], errors=[SoldOut])
    async def buy(item: Item, count: Annotated[int, Meta(ge=1)] = 1) -> None:
        if count > 9:
            raise SoldOut(retryAfterMs=1500)

    @service.query()
    def who(ctx: Context) -> list[Any]:
        return [ctx.identity and ctx.identity.subject, dict(ctx.service_params), ctx.url]

    @service.query()
    def further(a: int, **more: int) -> dict[str, int]:
        return more

    @service.mutation()
    def whole(params: list[int], /) -> int:
        return sum(params)

    @service.query()
    def nothing_or(maybe: bool) -> int | None:
        return 1 if maybe else None

    @service.query()
    async def broken() -> None:
        raise Undeclared

    @service.query(timeout=0.01)
    async def slow() -> None:
        await anyio.sleep_forever()

    @service.notification()
    def told(text: str) -> None: ...

    @service.query(visibility="internal")
    def hidden() -> None: ...

    return service


async def post(client: AsgiClient, name: str, params: Any = None, **headers: str) -> tuple[int, dict[str, str], Any]:
    body = params if isinstance(params, bytes) else json.dumps(params or {}).encode()
    status, told, answer = await client.request("POST", f"/operations/{name}", body, {**JSON, **headers})
    return status, told, json.loads(answer) if answer else None


async def get(client: AsgiClient, name: str, query: str = "", **headers: str) -> tuple[int, dict[str, str], Any]:
    status, told, answer = await client.request("GET", f"/operations/{name}?{query}", headers=headers)
    return status, told, json.loads(answer) if answer else None


@pytest.fixture
def served(serve: Serve) -> Any:
    return lambda *hosted, **settings: serve(*(hosted or (shop(),)), http_operations=True, **settings)


@pytest.fixture
async def client(served: Any) -> AsyncGenerator[AsgiClient]:
    """Of the shop, which knows no callers."""
    async with served() as found:
        yield found


async def test_an_operation_is_called_by_post_and_a_query_also_by_get(client: AsgiClient) -> None:
    for status, headers, result in (
        await post(client, "shop/get", {"name": "pen"}),
        await get(client, "shop/get", "name=pen"),
    ):
        assert (status, result) == (200, {"name": "pen", "price": 1})
        assert headers["content-type"] == "application/json"


async def test_a_handler_that_crashes_is_one_line_of_the_log(client: AsgiClient) -> None:
    with logged_events("info") as logged:
        assert (await post(client, "shop/broken"))[0] == 500
        ((name, fields),) = logged()
    assert (name, fields["method"], "id" in fields) == ("handler.failed", "shop/broken", False)


async def test_without_the_setting_nothing_of_it_is_served(serve: Serve) -> None:
    async with serve(shop()) as client:
        for path in ("/operations/shop/get", "/openapi.json"):
            assert (await client.request("GET", path))[0] in (404, 405)


async def test_an_operation_without_a_result_answers_204_and_null_is_a_result(client: AsgiClient) -> None:
    status, headers, result = await post(client, "shop/buy", {"item": {"name": "pen"}})
    assert (status, result) == (204, None)
    assert not headers.keys() & {"content-type", "content-length"}
    assert (await post(client, "shop/told", {"text": "x"}))[0] == 204
    status, _, body = await client.request("GET", "/operations/shop/nothing_or?maybe=false")
    assert (status, body) == (200, b"null")


async def test_a_declared_error_has_its_status_and_the_one_form_of_errors(client: AsgiClient) -> None:
    expected = {
        "code": "UNKNOWN_ITEM",
        "message": "There is no such item",
        "retryable": False,
        "details": {"name": "nothing"},
    }
    for status, _, error in (
        await post(client, "shop/get", {"name": "nothing"}),
        await get(client, "shop/get", "name=nothing"),
    ):
        assert (status, error) == (404, expected)


async def test_the_time_to_wait_is_told_by_retry_after(client: AsgiClient) -> None:
    status, headers, error = await post(client, "shop/buy", {"item": {"name": "x"}, "count": 10})
    assert (status, headers["retry-after"], error["details"]) == (409, "2", {"retryAfterMs": 1500})


async def test_a_limit_is_429_with_retry_after(served: Any) -> None:
    service, full = Service("shop"), anyio.Event()

    @service.query(limit=1)
    async def crowded() -> None:
        full.set()
        await anyio.sleep_forever()

    async with served(service) as client, anyio.create_task_group() as tasks:
        tasks.start_soon(client.request, "GET", "/operations/shop/crowded")
        await full.wait()
        status, headers, error = await get(client, "shop/crowded")
        assert (status, headers["retry-after"], error["code"]) == (429, "1", "OVERLOADED")
        assert error["details"] == {"retryAfterMs": 1000}
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("name", "status", "error"),
    [
        ("shop/slow", 504, {"code": "TIMEOUT", "retryable": True}),
        ("shop/broken", 500, {"code": "INTERNAL", "retryable": False, "details": {"code": "UNDECLARED"}}),
        *[
            (name, 404, {"code": "NOT_FOUND", "retryable": False})
            for name in ("shop/nobody", "shop/hidden", "services/list", "shutdown", "SendMessage", "", "shop/get/")
        ],
    ],
)
async def test_what_every_operation_may_fail_with(client: AsgiClient, name: str, status: int, error: Any) -> None:
    found = await post(client, name)
    assert found[0] == status
    assert found[2].pop("message")
    assert found[2] == error


async def test_a_name_may_be_percent_encoded(client: AsgiClient) -> None:
    assert (await get(client, "shop%2Fget", "name=pen"))[0] == 200


async def test_another_verb_is_405_with_those_that_are_allowed(client: AsgiClient) -> None:
    for verb, name, allowed in (
        ("GET", "shop/buy", "POST"),
        ("HEAD", "shop/buy", "POST"),
        ("GET", "shop/further", "POST"),
        ("PUT", "shop/get", "GET, HEAD, POST"),
        ("DELETE", "shop/buy", "POST"),
        ("OPTIONS", "shop/get", "GET, HEAD, POST"),
    ):
        status, headers, body = await client.request(verb, f"/operations/{name}", b"{}", JSON)
        assert (status, headers["allow"]) == (405, allowed)
        assert json.loads(body)["code"] == "INVALID_OPERATION_TYPE"
    assert (await client.request("HEAD", "/operations/shop/get?name=pen"))[0] == 200


# -- bodies --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "details"),
    [
        (b"null", {"param": "$", "expected": "object", "received": "null"}),
        (b' ["pen"]', {"param": "$", "expected": "object", "received": "array"}),
        (b'"pen"', {"param": "$", "expected": "object", "received": "string"}),
        (b"true", {"param": "$", "expected": "object", "received": "boolean"}),
        (b"-1", {"param": "$", "expected": "object", "received": "number"}),
        (b'{"name": 1}', {"param": "name", "expected": "string", "received": "number"}),
        (b"{}", {"param": "name", "expected": "string", "received": "missing"}),
    ],
)
async def test_a_body_that_holds_no_params_is_refused_with_the_first_fault(
    client: AsgiClient, body: bytes, details: Any
) -> None:
    status, _, error = await post(client, "shop/get", body)
    assert (status, error["code"], error["details"]) == (400, "INVALID_INPUT", details)


async def test_params_that_are_taken_whole_are_of_their_own_type(client: AsgiClient) -> None:
    assert (await post(client, "shop/whole", b"[1, 2, 3]"))[2] == 6
    status, _, error = await post(client, "shop/whole", b"null")
    assert (status, error["details"]["received"]) == (400, "null")


# -- callers -------------------------------------------------------------------------------------------------------


async def test_who_has_no_identity_is_401_and_who_lacks_a_scope_is_403(served: Any) -> None:
    params = {"item": {"name": "pen"}}
    async with served(tokens=TOKENS) as client:
        status, headers, error = await post(client, "shop/buy", params)
        assert (status, headers["www-authenticate"], error["code"]) == (401, 'Bearer realm="discreet"', "FORBIDDEN")
        assert error["details"] == {"authSchemes": ["bearer"], "realm": "discreet"}
        status, headers, error = await post(client, "shop/buy", params, **BOB)
        assert (status, error["code"]) == (403, "FORBIDDEN")
        assert headers["www-authenticate"].startswith('Bearer error="insufficient_scope", scope="')
        assert (await post(client, "shop/buy", params, **ADA))[0] == 204


async def test_callers_that_have_no_tokens_are_not_asked_for_one(served: Any) -> None:
    async with served(scopes=[""]) as client:
        status, headers, _ = await post(client, "shop/buy", {"item": {"name": "pen"}})
        assert (status, "www-authenticate" in headers) == (403, False)


@pytest.mark.parametrize(
    ("body", "media_type"), [(b"[1,", "application/json"), (b'{"item": 1}', "application/json"), (b"", "text/plain")]
)
async def test_who_may_not_call_learns_nothing_of_the_params(served: Any, body: bytes, media_type: str) -> None:
    async with served(tokens=TOKENS) as client:
        for verb in ("POST", "GET", "PUT"):
            for headers, expected in (({}, 401), (BOB, 403)):
                status, got, answer = await client.request(
                    verb, "/operations/shop/buy?a=1&a=2", body, {"content-type": media_type, **headers}
                )
                assert (status, msgspec.json.decode(answer)["code"], "allow" in got) == (expected, "FORBIDDEN", False)


async def test_large_answers_that_end_together_keep_within_the_memory(served: Any) -> None:
    going = anyio.Event()
    waiting: list[int] = []

    async def big() -> str:
        waiting.append(1)
        await going.wait()
        return "x" * 20_000_000

    service = Service("large")
    service.query(big)
    statuses: list[int] = []

    async def call(client: Any) -> None:
        statuses.append((await get(client, "large/big"))[0])

    async with served(service, max_memory=64 << 20) as client, anyio.create_task_group() as tasks:
        for _ in range(6):
            tasks.start_soon(call, client)
        while len(waiting) < 6:
            await anyio.lowlevel.checkpoint()
        going.set()
    assert set(statuses) == {200, 429}
    assert statuses.count(200) <= 3


async def test_a_handler_learns_who_calls_and_what_the_headers_say(served: Any) -> None:
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    async with served(tokens=TOKENS) as client:
        subject, params, url = (await get(client, "shop/who", traceparent=trace, baggage="c=d", cookie="a=b", **ADA))[2]
        assert (subject, url) == ("ada", "http://localhost/")
        assert params == {"traceparent": trace, "baggage": "c=d", **ADA}


async def test_an_api_key_in_the_query_is_no_param(served: Any) -> None:
    key = ApiKey(name="key", location="query")
    agent = agent_of(security_schemes={"key": key}, security=[requires({"key": []})])
    async with served(agent, shop(), tokens=TOKENS) as client:
        assert (await get(client, "shop/who", f"key={SECRET}"))[2][0] == "ada"
        status, _, error = await get(client, "shop/get", f"name=pen&name=pin&key={SECRET}")
        assert (status, error["details"]["param"]) == (400, "name")
        assert (await get(client, "shop/get", f"name=pen&key={SECRET}"))[0] == 200


async def test_at_the_end_calls_are_refused_with_503(client: AsgiClient) -> None:
    client._app._gateway.calls.close()
    status, headers, error = await get(client, "shop/get", "name=pen")
    assert (status, error["code"], headers["retry-after"]) == (503, "UNAVAILABLE", "1")


# -- Operations by plain HTTP: who must be known, and what callers are told whose requests are refused --


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
            read, sent = await get(client, "shop/closed", **headers), await post(client, "shop/closed", **headers)
            assert (read[0], sent[0]) == (status, status)
            assert "connection" not in read[1]
            assert (sent[1].get("connection") == "close") == (status == 401)  # its body is not read
        assert (await get(client, "shop/opened"))[::2] == (200, None)
        assert (await get(client, "shop/opened", **BOB))[::2] == (200, "bob")
        for headers, paths in (({}, ["opened"]), (BOB, ["closed", "opened"])):
            document = json.loads((await client.request("GET", "/openapi.json", headers=headers))[2])
            assert list(document["paths"]) == [f"/operations/shop/{name}" for name in paths]
        security = {path.rpartition("/")[2]: each["get"].get("security") for path, each in document["paths"].items()}
        assert security == {"closed": [{"bearer": []}], "opened": None}
    async with served(shop) as client:
        assert (await get(client, "shop/closed"))[0] == 200


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


# -- Params in the query of a URL: each in the form of its type, and a clear refusal of what does not fit --


def echoing() -> Service:
    service = Service("shop")

    @service.query()
    async def echo(
        text: str | None = None,
        number: int = 0,
        share: float = 0.0,
        yes: bool = False,
        day: datetime.date | None = None,
        kind: Literal["a", 1] = "a",
        texts: list[str] = [],  # noqa: B006 - copied for each call
        numbers: list[int] | None = None,
        item: Item | None = None,
        table: dict[str, list[int]] | None = None,
    ) -> list[Any]:
        return [text, number, share, yes, day, kind, texts, numbers, item, table]

    return service


@pytest.mark.parametrize(
    ("query", "result"),
    [
        ({}, [None, 0, 0.0, False, None, "a", [], None, None, None]),
        ({"text": "null"}, ["null", 0, 0.0, False, None, "a", [], None, None, None]),
        ({"text": ""}, ["", 0, 0.0, False, None, "a", [], None, None, None]),
        ({"text": "é ü+&"}, ["é ü+&", 0, 0.0, False, None, "a", [], None, None, None]),
        ({"number": "-12", "share": "1e3"}, [None, -12, 1000.0, False, None, "a", [], None, None, None]),
        ({"yes": "true", "day": "2026-01-31"}, [None, 0, 0.0, True, "2026-01-31", "a", [], None, None, None]),
        ({"texts": ["a", "1"], "numbers": [1, 2]}, [None, 0, 0.0, False, None, "a", ["a", "1"], [1, 2], None, None]),
        (
            {"item": '{"name":"pen"}', "table": '{"a":[1]}'},
            [None, 0, 0.0, False, None, "a", [], None, {"name": "pen", "price": 1}, {"a": [1]}],
        ),
        ({"item": "null"}, [None, 0, 0.0, False, None, "a", [], None, None, None]),
    ],
)
async def test_a_query_is_read_by_the_types_of_the_params(serve: Serve, query: Any, result: Any) -> None:
    async with serve(echoing(), http_operations=True) as client:
        status, headers, found = await get(client, "shop/echo", urlencode(query, doseq=True))
        assert (status, found, headers["cache-control"]) == (200, result, "no-store")


@pytest.mark.parametrize(
    ("query", "param", "expected", "received"),
    [
        ("number=x", "number", "integer", "string"),
        ("number=1.5", "number", "integer", "number"),
        ("number=%201", "number", "integer", "string"),
        ("number=", "number", "integer", "string"),
        ("number=%221%22", "number", "integer", "string"),
        ("number=1&number=2", "number", "one value", "array"),
        ("yes=True", "yes", "boolean", "string"),
        ("yes=1", "yes", "boolean", "number"),
        ("kind=1", "kind", "one of", "1"),
        ("day=today", "day", "date", "string"),
        ("numbers=1&numbers=x", "numbers[1]", "integer", "string"),
        ("item=pen", "item", "JSON", "string"),
        ("item=%7B%22name%22%3A1%7D", "item.name", "string", "number"),
        ("table=" + "[" * 5000, "table", "JSON", "string"),
        ("nobody=1", "nobody", "one of", "unknown field"),
        ("nobody=1&nobody=2", "$", "one value", "array"),
        ("text=%ff", "$", "percent-encoded UTF-8", "string"),
    ],
)
async def test_a_query_that_does_not_fit_is_refused_with_the_param_and_what_was_expected(
    serve: Serve, query: str, param: str, expected: str, received: str
) -> None:
    async with serve(echoing(), http_operations=True) as client:
        status, _, error = await get(client, "shop/echo", query)
        found = error["details"]
        assert (status, error["code"]) == (400, "INVALID_INPUT")
        assert (found["param"], found["expected"], found["received"]) == (param, expected, received)


# -- Whole numbers are integers however they are written, and nothing else changes --


def takes_integers(count: int, rest: Any = None) -> None: ...
def takes_decimals(price: decimal.Decimal, rest: Any = None) -> None: ...


LARGE = b'{"count": 5.0, "rest": [%b1]}' % (b"1e300," * 4_000)
INTEGERS, DECIMALS = build_input(takes_integers), build_input(takes_decimals)


@pytest.mark.parametrize(
    ("model", "text", "read"),
    [
        (INTEGERS, b'{"count": 5.0}', b'{"count": 5}'),
        (INTEGERS, b'{"count":-50e-1,"rest":[1.50, 2.0]}', b'{"count":-5,"rest":[1.50, 2]}'),
        (INTEGERS, b'{"count": 1e3, "rest": "1.0, \\"2.0"}', b'{"count": 1000, "rest": "1.0, \\"2.0"}'),
        (INTEGERS, b'{"count": 1E+22}', b'{"count": 10000000000000000000000}'),
        (INTEGERS, b'{"count": -0.0}', b'{"count": 0}'),
        (INTEGERS, b'{"count": 5, "rest": 2.0}', b'{"count": 5, "rest": 2.0}'),
        (INTEGERS, b'{"count": 5.5}', b'{"count": 5.5}'),
        (INTEGERS, b'{"count": 1e999999999}', b'{"count": 1e999999999}'),
        (INTEGERS, b'{"count": 1e99999999999999999999}', b'{"count": 1e99999999999999999999}'),
        (INTEGERS, LARGE, LARGE),
        (INTEGERS, b'{"count": 1e-400}', b'{"count": 1e-400}'),
        (INTEGERS, b'{"count": "5.0"}', b'{"count": "5.0"}'),
        (DECIMALS, b'{"price": 2.50, "rest": 1.0}', b'{"price": 2.50, "rest": 1.0}'),
    ],
)
def test_what_is_read_of_a_text(model: InputModel, text: bytes, read: bytes) -> None:
    assert with_whole_numbers(text, model) == read


@given(st.floats(allow_nan=False, allow_infinity=False).filter(float.is_integer), st.text())
def test_any_whole_float_is_the_integer_of_its_value(number: float, text: str) -> None:
    written = b'{"count":%b,"rest":%b}' % (repr(number).encode(), msgspec.json.encode(text))
    count, rest = INTEGERS.decode(with_whole_numbers(written, INTEGERS))
    assert (count, rest) == (int(decimal.Decimal(repr(number))), text)


async def test_a_call_takes_them_in_its_body_and_in_its_query(serve: Serve) -> None:
    service = Service("shop")

    @service.query()
    async def double(count: int, counts: list[int] = []) -> list[int]:  # noqa: B006 - copied for each call
        return [2 * each for each in (count, *counts)]

    async with serve(service, http_operations=True) as client:
        assert (await post(client, "shop/double", b'{"count": 2.0, "counts": [3e0, 4]}'))[2] == [4, 6, 8]
        assert (await get(client, "shop/double", "count=2.0&counts=3e0&counts=4"))[2] == [4, 6, 8]
        assert (await post(client, "shop/double", b'{"count": 2.5}'))[0] == 400
