"""What callers see of an API that was imported: its results, its errors by their codes, and only what is exposed."""

from __future__ import annotations

import runpy
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

pytest.importorskip("jsonschema_rs")
pytest.importorskip("h11")

from discreet.client import MCP, MethodNotFound, OperationFailed, Peer, connect

HERE = Path(__file__).parent
SERVER = runpy.run_path(str(HERE / "pets_server.py"))
PETS, Pets = SERVER["PETS"], SERVER["Pets"]

DISCREET = [sys.executable, "-P", "-m", "discreet", "serve", "--import-private"]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """The example, whose document names the port of a running API."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Pets)
    Thread(target=server.serve_forever, daemon=True).start()
    for name in ("pets.json", "shelter.py", "discreet.toml", "token"):
        text = (HERE / name).read_text(encoding="utf-8")
        (tmp_path / name).write_text(text.replace("8090", str(server.server_port)), encoding="utf-8")
    yield tmp_path
    server.shutdown()
    server.server_close()


@asynccontextmanager
async def shelter(folder: Path) -> AsyncIterator[Peer]:
    apps = ["./shelter.py:shelter", "./shelter.py:pets", "--credential", "pets=token"]
    async with connect([*DISCREET, *apps], cwd=folder) as peer:
        yield peer


@pytest.mark.anyio
async def test_a_service_uses_the_operations_and_gives_their_errors_its_own_names(folder: Path) -> None:
    async with shelter(folder) as peer:
        assert await peer.call("shelter/describe", {"name": "tom"}) == "tom is a cat"
        assert await peer.call("shelter/count") == {"cat": 1, "dog": 1}
        with pytest.raises(OperationFailed) as failed:
            await peer.call("shelter/describe", {"name": "kitty"})
        assert (failed.value.failure.code, failed.value.details) == ("NOT_HERE", {"name": "kitty"})
        with pytest.raises(MethodNotFound):
            await peer.call("pets/get_pet", {"name": "tom"})


@pytest.mark.anyio
async def test_the_settings_file_exposes_what_it_names(folder: Path) -> None:
    async with connect([*DISCREET, "--config", "discreet.toml"], cwd=folder) as peer:
        assert await peer.call("pets/list_pets", {"kind": "dog"}) == [{"name": "rex", "kind": "dog"}]
        with pytest.raises(OperationFailed) as failed:
            await peer.call("pets/get_pet", {"name": "kitty"})
        assert (failed.value.failure.code, failed.value.details) == ("HTTP_404", {"unknown": "kitty"})
        with pytest.raises(MethodNotFound):
            await peer.call("pets/add_pet", {"body": {"name": "kitty", "kind": "cat"}})


@pytest.mark.anyio
async def test_one_command_makes_tools_of_the_document(folder: Path) -> None:
    command = [*DISCREET, "--import", "pets=pets.json", "--credential", "pets=token", "--dialect", "mcp"]
    async with connect(command, cwd=folder, dialect=MCP) as peer:
        tools = {tool["name"]: tool for tool in (await peer.call("tools/list"))["tools"]}
        assert tools.keys() == {"pets_list_pets", "pets_get_pet", "pets_add_pet"}
        pet = {"name": "kitty", "kind": "cat"}
        added = await peer.call("tools/call", {"name": "pets_add_pet", "arguments": {"body": pet}})
        assert added["structuredContent"] == pet
        again = await peer.call("tools/call", {"name": "pets_add_pet", "arguments": {"body": pet}})
        assert again["isError"] is True
        assert again["structuredContent"]["code"] == "HTTP_429"
    del PETS["kitty"]
