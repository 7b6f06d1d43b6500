"""Params in the query of a URL: each in the form of its type, and a clear refusal of what does not fit."""

from __future__ import annotations

import datetime
from typing import Any, Literal
from urllib.parse import urlencode

import pytest

from discreet import Service

from .conftest import Serve
from .test_operations import Item, get

pytestmark = pytest.mark.anyio


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
        ("number=1%20", "number", "integer", "string"),
        ("number=", "number", "integer", "string"),
        ("number=null", "number", "integer", "string"),
        ("number=%221%22", "number", "integer", "string"),
        ("number=[1]", "number", "integer", "string"),
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
