"""The Python client: what it looks like, what type checkers say of it, and what it does with a daemon."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import discreet
from discreet import Context
from discreet.client import OperationFailed, Peer, connect
from discreet.daemon.operations.service import Service
from discreet.generate import python_client
from discreet.schemas.documents import OperationSchema, operation_schema
from discreet.testing import in_memory
from support.programs import environment, for_type_checkers

HERE = Path(__file__).parent
SOURCES = Path(discreet.__file__).parents[1]


@pytest.fixture(scope="module")
def text(operations: list[OperationSchema]) -> str:
    return python_client(operations)


@pytest.fixture(scope="module")
def folder(text: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the client and a program that uses it."""
    folder = tmp_path_factory.mktemp("python")
    (folder / "kinds_client.py").write_text(text, encoding="utf-8")
    shutil.copy(HERE / "usage.py", folder)
    return folder


@pytest.fixture
def client(folder: Path) -> Iterator[ModuleType]:
    with_it = _imported("kinds_client", folder)
    yield with_it
    sys.modules.pop("kinds_client")


def _imported(name: str, folder: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def usage(client: ModuleType, folder: Path) -> Iterator[ModuleType]:
    yield _imported("usage", folder)
    sys.modules.pop("usage")


def run_tool(*command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=cwd, env=for_type_checkers(), capture_output=True, text=True, check=False, timeout=120
    )


def test_every_kind_of_type_has_its_python_form(text: str) -> None:
    """Made by `discreet generate python ./kinds_app.py:app ./kinds_app.py:bare -o kinds_client.py.txt`."""
    assert text == (HERE / "kinds_client.py.txt").read_text(encoding="utf-8")


def test_the_order_in_which_operations_come_does_not_matter(operations: list[OperationSchema], text: str) -> None:
    assert python_client(reversed(operations)) == text


def test_a_client_of_nothing_is_a_module(tmp_path: Path) -> None:
    (tmp_path / "empty_client.py").write_text(python_client([]), encoding="utf-8")
    assert _imported("empty_client", tmp_path).__doc__ == "Typed clients of a daemon: nothing."


@pytest.mark.needs("ruff")
def test_it_is_formatted_as_ruff_formats(folder: Path) -> None:
    done = run_tool(sys.executable, "-P", "-m", "ruff", "format", "--isolated", "--diff", "kinds_client.py", cwd=folder)
    assert (done.stdout, done.returncode) == ("", 0), done.stderr


@pytest.mark.needs("mypy")
def test_mypy_is_content_with_it_and_with_its_use(folder: Path, tmp_path: Path) -> None:
    options = ("--strict", "--no-error-summary", "--cache-dir", str(tmp_path))
    done = run_tool(sys.executable, "-P", "-m", "mypy", *options, "kinds_client.py", "usage.py", cwd=folder)
    assert (done.stdout, done.returncode) == ("", 0), done.stderr


@pytest.mark.needs("basedpyright")
def test_pyright_is_content_with_it_and_with_its_use(folder: Path) -> None:
    settings = {"include": ["."], "typeCheckingMode": "strict", "extraPaths": [str(SOURCES)], "pythonVersion": "3.11"}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    python_path = ("--pythonpath", sys.executable)
    done = run_tool(sys.executable, "-P", "-m", "basedpyright", "--outputjson", *python_path, cwd=folder)
    report = json.loads(done.stdout)
    assert report["generalDiagnostics"] == []
    assert report["summary"]["filesAnalyzed"] == 2


@pytest.mark.anyio
async def test_what_it_sends_and_gets_keeps_its_types(usage: ModuleType, client: Any, services: list[Service]) -> None:
    async with in_memory(*services) as peer:
        assert await usage.run(peer) == expected(client)


def expected(client: Any) -> list[object]:
    return [
        "pong",
        True,
        ("green", 2),
        [(1.0, 0.0), (1.0, 3.0), (4.0, 0.0)],
        [client.Cat(lives=7), client.Dog(name="Rex", friends=[client.Cat(lives=1)])],
        "no Rex near [2.5]",
        ("root", ["root"], "dash"),
        [7, 2, 1, 9],
        "a",
        {"first": 1, "second": 2},
        [1],
        [1, 2],
    ]


def test_it_works_with_a_daemon_in_a_process_of_its_own(usage: ModuleType, client: Any) -> None:
    import anyio

    async def talk() -> list[object]:
        command = [sys.executable, "-P", "-m", "discreet", "serve", "./kinds_app.py:app", "./kinds_app.py:bare"]
        async with connect(command, cwd=HERE, env=environment()) as peer:
            found: list[object] = await usage.run(peer)
            return found

    assert anyio.run(talk) == expected(client)


@pytest.mark.anyio
async def test_a_declared_error_is_raised_as_its_class_with_what_came_as_the_cause(
    client: Any, services: list[Service]
) -> None:
    async with in_memory(*services) as peer:
        with pytest.raises(client.Busy) as raised:
            await client.KindsClient(peer).take("all")
    assert raised.value.definition.retryable
    assert isinstance(raised.value.__cause__, OperationFailed)


@pytest.mark.anyio
async def test_a_stream_that_fails_raises_the_declared_error_behind_its_last_event(
    client: Any, services: list[Service]
) -> None:
    seen: list[int] = []
    async with in_memory(*services) as peer:
        with pytest.raises(client.NotThere) as raised:
            async for pet in client.KindsClient(peer).count(4):
                seen.append(pet.lives)  # noqa: PERF401 - the error must not lose them
    assert (seen, raised.value.what) == ([1, 2, 3], "more")


@pytest.mark.anyio
async def test_service_params_of_a_client_travel_with_calls_and_subscriptions(tmp_path: Path) -> None:
    probe = Service("probe")

    @probe.query()
    def trace(ctx: Context) -> Mapping[str, str]:
        return dict(ctx.service_params)

    @probe.subscription()
    async def traces(ctx: Context) -> AsyncIterator[Mapping[str, str]]:
        yield dict(ctx.service_params)

    (tmp_path / "probe_client.py").write_text(python_client(map(operation_schema, probe.operations)), encoding="utf-8")
    module: Any = _imported("probe_client", tmp_path)
    given = {"traceparent": "00-1-2-00"}

    async def asked(peer: Peer) -> list[object]:
        client = module.ProbeClient(peer, service_params=given)
        return [await client.trace(), *[event async for event in client.traces()]]

    async with in_memory(probe) as peer:
        assert await asked(peer) == [given, given]
