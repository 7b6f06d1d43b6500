"""Whole numbers are integers however they are written, and nothing else changes."""

from __future__ import annotations

import decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import Service
from discreet.daemon.operations.params import InputModel, build_input
from discreet.gateway.operations import with_whole_numbers

from .conftest import Serve
from .test_operations import get, post


def takes_integers(count: int, rest: Any = None) -> None: ...
def takes_decimals(price: decimal.Decimal, rest: Any = None) -> None: ...


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


@pytest.mark.anyio
async def test_a_call_takes_them_in_its_body_and_in_its_query(serve: Serve) -> None:
    service = Service("shop")

    @service.query()
    async def double(count: int, counts: list[int] = []) -> list[int]:  # noqa: B006 - copied for each call
        return [2 * each for each in (count, *counts)]

    async with serve(service, http_operations=True) as client:
        assert (await post(client, "shop/double", b'{"count": 2.0, "counts": [3e0, 4]}'))[2] == [4, 6, 8]
        assert (await get(client, "shop/double", "count=2.0&counts=3e0&counts=4"))[2] == [4, 6, 8]
        assert (await post(client, "shop/double", b'{"count": 2.5}'))[0] == 400


def test_large_params_are_left_as_they_are() -> None:
    text = b'{"count": 5.0, "rest": [%b1]}' % (b"1e300," * 4_000)
    assert with_whole_numbers(text, INTEGERS) == text
