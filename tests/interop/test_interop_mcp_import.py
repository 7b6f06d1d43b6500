"""Servers of the official SDK of MCP, imported."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jsonschema_rs")

from discreet import Service
from discreet.client import InvalidParams, OperationFailed
from discreet.imports.archive import pack
from discreet.imports.from_mcp import mcp_service
from discreet.imports.mcp.session import read_mcp
from discreet.imports.service import ImportOptions
from discreet.imports.targets import Command, Target, Url
from discreet.testing import in_memory
from support.requirements import interop_python, missing
from support.waits import until, wait_until

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(sys.platform == "win32", reason="ends servers as POSIX does")]

SERVER = Path(__file__).parent / "server_mcp_sdk.py"


@contextmanager
def http_target(python: str) -> Iterator[Url]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [python, "-P", str(SERVER), str(port)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:

            def listens() -> bool:
                with socket.socket() as probe:
                    return probe.connect_ex(("127.0.0.1", port)) == 0

            wait_until(listens)
            yield Url(f"http://127.0.0.1:{port}/mcp", allow_private=True)
        finally:
            process.kill()


def imported(target: Target) -> Service:
    return mcp_service("sdk", target, pack(read_mcp(target, "sdk")), ImportOptions(expose=True))


async def use(target: Target) -> None:
    service = imported(target)
    kinds = {spec.name: (spec.kind, spec.idempotent) for spec in service.operations}
    assert kinds["sdk/length"] == ("query", True)
    assert kinds["sdk/fail"] == ("mutation", True)
    told: list[Any] = []
    async with in_memory(service) as peer:
        path = {"points": [{"x": 1, "y": 2}], "next": {"points": []}}
        assert await peer.call("sdk/length", {"path": path}) == {"result": 1}
        with pytest.raises(InvalidParams) as invalid:
            await peer.call("sdk/length", {"path": {"points": [{"x": 1}]}})
        assert invalid.value.failure.param == "path.points[0].y"
        with pytest.raises(OperationFailed) as failed:
            await peer.call("sdk/fail", {"reason": "because"})
        assert failed.value.code == "MCP_TOOL_ERROR"
        assert failed.value.details["content"][0]["type"] == "text"
        result = await peer.call("sdk/steps", {"count": 2}, on_progress=told.append)
        assert result["content"][0]["text"] == "done"
        assert [each["progress"] for each in told] == [1, 2]
        read = await peer.call("sdk/resources/text", {"name": "one"})
        assert read["contents"][0]["text"] == "The text one."
        prompt = await peer.call("sdk/prompts/ask", {"about": "it"})
        assert prompt["messages"][0]["content"]["text"] == "What about it?"
        await peer.call("sdk/add", {"name": "extra"})

        async def listed() -> bool:
            return "sdk/extra" in [each["name"] for each in await peer.call("services/list")]

        await until(listed)


def python_of(major: int) -> str:
    """`DISCREET_INTEROP_MCP_1` names a Python that has mcp 1.30 or later, but not 2."""
    if major == 1:
        return os.environ.get("DISCREET_INTEROP_MCP_1") or missing(
            "DISCREET_INTEROP_MCP_1 names no Python that has mcp"
        )
    return interop_python("mcp", major)


@pytest.mark.parametrize("major", [1, 2])
async def test_a_server_of_the_sdk_by_stdio_is_imported(major: int) -> None:
    await use(Command((python_of(major), "-P", str(SERVER))))


@pytest.mark.parametrize("major", [1, 2])
async def test_a_server_of_the_sdk_by_http_is_imported(major: int) -> None:
    pytest.importorskip("httpcore")
    with http_target(python_of(major)) as target:
        await use(target)
