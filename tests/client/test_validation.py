"""Arguments are checked before anything is started or sent, and the message says what is wrong and where."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from discreet.client import Dialect, EndBounds, RestartPolicy, RetryPolicy, attach, blocking, connect
from discreet.client.validation import check_timeout, encode_params
from discreet.errors import OperationError

pytestmark = pytest.mark.anyio


class Item(msgspec.Struct):
    name: str
    price: float | None = None


@pytest.mark.parametrize(
    ("params", "place"),
    [
        ({"a": ["\ud800"]}, r"params\.a\[0\]"),
        ({"a": {"\udfff": 1}}, r"params\.a"),
        ([Item("x", float("nan"))], r"params\[0\]\.price"),
        ({"a": None, "b": (1.0, float("inf"))}, r"params\.b\[1\]"),
        ({"a": msgspec.Raw(b"null"), "b": float("-inf")}, r"params\.b"),
    ],
)
def test_values_that_json_can_not_hold_are_refused_with_their_path(params: object, place: str) -> None:
    with pytest.raises(ValueError, match=rf"^{place} "):
        encode_params(params)


def test_params_nested_without_end_are_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(ValueError, match="nested"):
        encode_params(endless)


def test_an_intended_null_is_sent() -> None:
    params = {"a": None, "b": [Item("null")], "c": msgspec.Raw(b"null")}
    assert encode_params(params) == b'{"a":null,"b":[{"name":"null","price":null}],"c":null}'


@pytest.mark.parametrize("params", [5, "text", True, msgspec.Raw(b"null"), msgspec.Raw(b" 5"), msgspec.Raw()])
def test_params_are_an_object_or_an_array(params: object) -> None:
    with pytest.raises(TypeError, match="object or an array"):
        encode_params(params)


def test_the_text_of_params_may_begin_with_blanks() -> None:
    assert encode_params(msgspec.Raw(b" [1]")) == b" [1]"


@pytest.mark.parametrize("timeout", [-1, float("nan"), "5", True])
def test_a_timeout_that_is_no_number_of_seconds_is_refused(timeout: object) -> None:
    with pytest.raises(ValueError, match="timeout"):
        check_timeout(timeout)


class NoHook:
    async def on_attempt(self, attempt: object) -> None: ...


@pytest.mark.parametrize(
    ("make", "values", "error"),
    [
        (RetryPolicy, {"attempts": 2.5}, ValueError),
        (RetryPolicy, {"attempts": True}, ValueError),
        (RetryPolicy, {"attempts": 0}, ValueError),
        (RetryPolicy, {"initial": -1}, ValueError),
        (RetryPolicy, {"cap": float("nan")}, ValueError),
        (RetryPolicy, {"deadline": 0}, ValueError),
        (RetryPolicy, {"hooks": [5]}, TypeError),
        (RetryPolicy, {"hooks": (NoHook(),)}, TypeError),
        (RetryPolicy, {"hooks": NoHook()}, TypeError),
        (RestartPolicy, {"limit": -1}, ValueError),
        (RestartPolicy, {"within": 0}, ValueError),
        (RestartPolicy, {"initial": "x"}, ValueError),
        (RestartPolicy, {"cap": -1}, ValueError),
        (EndBounds, {"eof": -1}, ValueError),
        (EndBounds, {"terminate": "x"}, ValueError),
        (EndBounds, {"kill": None}, ValueError),
    ],
)
def test_a_policy_refuses_what_it_could_not_apply(make: Any, values: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error, match=next(iter(values))):
        make(**values)


class NoOrder(OperationError, code="NO_ORDER"):
    """There is no order."""


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"command": "touch started"}, TypeError),
        ({"command": b"touch started"}, TypeError),
        ({"command": []}, ValueError),
        ({"command": ["touch", 5]}, TypeError),
        ({"framing": "bogus"}, ValueError),
        ({"timeout": "5"}, ValueError),
        ({"errors": NoOrder}, TypeError),
        ({"errors": [OperationError]}, TypeError),
        ({"errors": [ValueError]}, TypeError),
        ({"env": {"A": 1}}, TypeError),
        ({"stderr": "nul"}, ValueError),
        ({"bounds": 3}, TypeError),
        ({"dialect": "lsp"}, TypeError),
        ({"dialect": Dialect(framing="bogus")}, ValueError),  # type: ignore[arg-type]
        ({"retry": True}, TypeError),
        ({"restart": True}, TypeError),
    ],
)
async def test_wrong_arguments_are_refused_before_anything_is_started(
    options: dict[str, Any], error: type[Exception], tmp_path: Path
) -> None:
    given = {"command": ["touch", "started"], **options}
    with pytest.raises(error, match=next(iter(options))):
        async with connect(given.pop("command"), cwd=tmp_path, **given):
            pass
    assert not (tmp_path / "started").exists()


def test_an_event_loop_that_there_is_not_is_refused_at_once() -> None:
    with (
        pytest.raises(ValueError, match="backend must be one of 'asyncio', 'trio', not 'curio'"),
        blocking.connect(["x"], backend="curio"),  # type: ignore[arg-type]
    ):
        pass


async def test_a_wrong_timeout_of_a_call_is_refused_before_anything_is_sent(wired: Any) -> None:
    async with wired() as (peer, server):
        with pytest.raises(ValueError, match="timeout"):
            await peer.call("m", timeout=-1)
        with pytest.raises(ValueError, match="timeout"):
            peer.subscribe("m", timeout=-1)
        for wrong in (
            {"errors": NoOrder},
            {"errors": [NoOrder()]},
            {"service_params": {"a": 1}},
            {"service_params": "a"},
            {"type": 5},
            {"params": 5},
            {"method": 5},
        ):
            with pytest.raises(TypeError):
                await peer.call(**{"method": "m", **wrong})
            with pytest.raises(TypeError):
                peer.subscribe(**{"method": "m", **wrong})
        for notified in ({"service_params": "a"}, {"params": "x"}, {"method": 5}):
            with pytest.raises(TypeError):
                await peer.notify(**{"method": "m", **notified})
        await peer.notify("first")
        assert (await server.read())["method"] == "first"


async def test_a_command_is_no_transport() -> None:
    with pytest.raises(TypeError, match="connect"):
        async with attach(["discreet"]):  # type: ignore[arg-type]
            pass
