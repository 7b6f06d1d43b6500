"""What the log says of a failure: the number that the client was given, in every dialect."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from discreet import OperationError, Service

pytestmark = pytest.mark.anyio


class NotThere(OperationError, code="NOT_THERE"):
    """It is not there"""


def shop() -> Service:
    service = Service("shop")

    @service.query(timeout=0.01)
    async def late() -> None:
        """Take longer than the deadline."""
        await anyio.sleep_forever()

    @service.query(errors=[NotThere])
    async def missing() -> None:
        """Raise a declared error."""
        raise NotThere

    @service.notification("shop/told")
    def told(text: str) -> None:
        """Take note."""

    return service


def logged_failures(logged: Any) -> list[tuple[int | None, str]]:
    return [(fields.get("code"), fields["failure"]) for name, fields in logged() if name == "request.failed"]


@pytest.mark.parametrize(
    ("dialect", "hello"),
    [
        ("plain", None),
        ("lsp", {"processId": None, "rootUri": None, "capabilities": {}}),
        ("acp", {"protocolVersion": 1}),
    ],
)
async def test_the_log_has_the_number_that_the_client_was_given(
    serving: Any, logged: Any, dialect: str, hello: dict[str, Any] | None
) -> None:
    async with serving(shop(), dialect=dialect, framing="content-length") as wire:
        if hello is not None:
            await wire.call("initialize", hello)
        given = [(await wire.call(method))["error"]["code"] for method in ("shop/late", "shop/missing", "no/such")]
    assert logged_failures(logged) == list(zip(given, ["TIMEOUT", "NOT_THERE", "NOT_FOUND"], strict=True))


async def test_a_failure_that_is_told_as_a_result_has_no_number(serving: Any, logged: Any) -> None:
    async with serving(shop(), dialect="mcp", framing="content-length") as wire:
        await wire.call("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}})
        assert (await wire.call("tools/call", {"name": "shop_missing"}))["result"]["isError"]
    assert logged_failures(logged) == [(None, "NOT_THERE")]


async def test_a_notification_that_fails_has_no_number(serving: Any, logged: Any) -> None:
    async with serving(shop()) as wire:
        await wire.send({"jsonrpc": "2.0", "method": "shop/told", "params": {"text": 1}})
        await wire.nothing_more()
    assert logged_failures(logged) == [(None, "INVALID_INPUT")]
