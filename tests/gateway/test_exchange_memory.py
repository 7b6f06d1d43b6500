"""What an answered request leaves behind."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from discreet.gateway.exchange import Exchange

pytestmark = pytest.mark.anyio

SAID = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "Ada"}]}}


@pytest.mark.parametrize("method", ["SendMessage", "SendStreamingMessage", "GetTask"])
async def test_an_answered_request_is_freed_without_the_collector(serve: Any, method: str) -> None:
    async with serve() as client:
        params = {"id": "none"} if method == "GetTask" else SAID
        gc.collect()
        gc.disable()
        try:
            async with client.stream(method, params, a2a_version="1.0") as reply:
                assert reply.status == 200
                await reply.body()
            assert [each for each in gc.get_objects() if isinstance(each, Exchange)] == []
        finally:
            gc.enable()
