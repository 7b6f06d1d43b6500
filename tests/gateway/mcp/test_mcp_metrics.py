"""What is counted of the requests of MCP by HTTP."""

from __future__ import annotations

import pytest

from support.mcp_http import MODERN, McpHttp, begun
from support.waits import until

from ..conftest import Serve
from .conftest import SERVED, Works

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("modern", [True, False])
async def test_requests_are_counted_when_they_are_answered_and_not_when_somebody_asks(
    serve: Serve, works: Works, modern: bool
) -> None:
    async with serve(works.service, **SERVED) as client:
        ours = McpHttp(client, MODERN) if modern else await begun(client)
        await ours.post("tools/list")
        await ours.post("tools/call", {"name": "work_add", "arguments": {"a": 1, "b": 2}})
        methods = client._app._gateway._host.request_metrics["http"].methods  # type: ignore[attr-defined]
        await until(lambda: methods["work/add"].durations.count == 1)
        assert methods["tools/list"].durations.count == 1
