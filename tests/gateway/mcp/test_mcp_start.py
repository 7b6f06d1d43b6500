"""What can't be offered to clients of MCP is said at the start."""

from __future__ import annotations

import pytest

from discreet import DeclarationError, Service
from discreet.http import asgi


def twins() -> Service:
    service = Service("")

    @service.query("a/b")
    async def first() -> None: ...

    @service.query("a_b")
    async def second() -> None: ...

    return service


def test_operations_of_one_tool_name_can_not_be_served() -> None:
    with pytest.raises(DeclarationError, match="operations a/b and a_b are both the tool a_b"):
        asgi(twins(), isolated=True, http_mcp=True)
    asgi(twins(), isolated=True)
