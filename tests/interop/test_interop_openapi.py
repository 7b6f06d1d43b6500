"""Tools of others that read OpenAPI documents: generators write clients that work, and schemathesis finds nothing wrong.

`DISCREET_OPENAPI_PYTHON` names an interpreter with openapi-python-client and schemathesis, `DISCREET_OPENAPI_NODE` a folder
`node_modules` with openapi-typescript and openapi-fetch.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.gateways import http_daemon
from support.requirements import missing
from support.waits import DEADLINE_SECONDS

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples"
SLOW_SECONDS = 300
"""For a whole run of schemathesis, on a machine that others use, too."""

SESSION = {
    "add": "1 one", "read": "1", "edit": "two 2", "search": "two", "missing": "404 NO_SUCH_NOTE 99",
    "conflict": "409 False 2", "wrong": "400 text",
}  # fmt: skip
"""What each client prints."""


@pytest.fixture
def notes(tmp_path: Path) -> Iterator[str]:
    """The URL of the notes of the examples, without the slash at its end."""
    pytest.importorskip("uvicorn")
    shutil.copy(EXAMPLES / "notes" / "notes.py", tmp_path)
    with http_daemon(tmp_path, "./notes.py:notes", "--http-operations") as url:
        yield url.rstrip("/")


def python() -> str:
    name = "DISCREET_OPENAPI_PYTHON"
    return os.environ.get(name) or missing(f"{name} names no interpreter with openapi-python-client and schemathesis")


def node_modules() -> Path:
    name = "DISCREET_OPENAPI_NODE"
    found = os.environ.get(name) or missing(f"{name} names no folder with openapi-typescript and openapi-fetch")
    return Path(found)


def run(*command: object, folder: Path, seconds: float = DEADLINE_SECONDS, **variables: str) -> str:
    """What a program prints that succeeds."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env={**kept, **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    return done.stdout


def said(printed: str) -> dict[str, str]:
    return {name: value for name, _, value in (line.partition("=") for line in printed.splitlines())}


def test_a_client_of_openapi_python_client_calls_the_example(notes: str, tmp_path: Path) -> None:
    generator = [python(), "-m", "openapi_python_client", "generate", "--meta", "none", "--output-path", "generated"]
    (tmp_path / "config.json").write_text(json.dumps({"post_hooks": []}))
    told = run(*generator, "--url", f"{notes}/openapi.json", "--config", "config.json", folder=tmp_path)
    assert "WARNING" not in told, told
    session = shutil.copy(HERE / "session_openapi_client.py", tmp_path)
    assert said(run(python(), session, notes, folder=tmp_path)) == SESSION


def test_a_client_with_the_types_of_openapi_typescript_compiles_and_calls_the_example(
    notes: str, tmp_path: Path
) -> None:
    (tmp_path / "node_modules").symlink_to(node_modules())
    tools = tmp_path / "node_modules" / ".bin"
    run(tools / "openapi-typescript", f"{notes}/openapi.json", "-o", "notes.d.ts", folder=tmp_path)
    shutil.copy(HERE / "session_openapi.ts", tmp_path / "session_openapi.mts")
    options = ["--strict", "--module", "nodenext", "--target", "es2022", "--lib", "es2022,dom", "--skipLibCheck"]
    run(tools / "tsc", *options, "session_openapi.mts", folder=tmp_path)
    assert said(run("node", "session_openapi.mjs", notes, folder=tmp_path)) == SESSION


@pytest.fixture
def shapes(tmp_path: Path) -> Iterator[str]:
    """The URL of a service of tagged unions."""
    pytest.importorskip("uvicorn")
    shutil.copy(HERE / "shapes.py", tmp_path)
    with http_daemon(tmp_path, "./shapes.py:shapes", "--http-operations") as url:
        yield url.rstrip("/")


def test_a_client_of_openapi_python_client_can_forget_no_tag(shapes: str, tmp_path: Path) -> None:
    generator = [python(), "-m", "openapi_python_client", "generate", "--meta", "none", "--output-path", "generated"]
    (tmp_path / "config.json").write_text(json.dumps({"post_hooks": []}))
    run(*generator, "--url", f"{shapes}/openapi.json", "--config", "config.json", folder=tmp_path)
    session = shutil.copy(HERE / "session_shapes.py", tmp_path)
    assert said(run(python(), session, shapes, folder=tmp_path)) == {"area": "4.0", "swap": "1.0", "forgotten": "True"}


def test_a_client_with_the_types_of_openapi_typescript_can_forget_no_tag_and_omit_what_has_a_default(
    shapes: str, tmp_path: Path
) -> None:
    (tmp_path / "node_modules").symlink_to(node_modules())
    tools = tmp_path / "node_modules" / ".bin"
    run(tools / "openapi-typescript", f"{shapes}/openapi.json", "-o", "shapes.d.ts", folder=tmp_path)
    shutil.copy(HERE / "session_shapes.ts", tmp_path / "session_shapes.mts")
    options = ["--strict", "--module", "nodenext", "--target", "es2022", "--lib", "es2022,dom", "--skipLibCheck"]
    run(tools / "tsc", *options, "session_shapes.mts", folder=tmp_path)
    assert said(run("node", "session_shapes.mjs", shapes, folder=tmp_path)) == {"area": "4", "swap": "1"}


CONFIG = """
[checks.positive_data_acceptance]
expected-statuses = ["2xx", "3xx", 401, 403, 404, 409, 429, 431, "5xx"]

[checks.negative_data_rejection]
expected-statuses = [400, 401, 403, 404, 405, 406, 409, 415, 422, 428, 429, 431, "5xx"]
"""
"""What schemathesis itself expects, and the status of a URL that is too long: texts in it have no other limit."""


@pytest.mark.parametrize(
    ("app", "examples", "more"),
    [
        (EXAMPLES / "notes" / "notes.py:notes", 5, ["--exclude-path", "/operations/notes/changes"]),  # it never ends
        (EXAMPLES / "mcp_shop" / "shop.py:shop", 5, []),
        (HERE / "operations_of_all_types.py:service", 1, []),
    ],
    ids=["notes", "shop", "two hundred operations"],
)
def test_schemathesis_finds_nothing_wrong(app: Path, examples: int, more: list[str], tmp_path: Path) -> None:
    """Every check, with what fits the document and what does not. The seed is fixed: a run says the same each time."""
    pytest.importorskip("uvicorn")
    path, _, name = str(app).rpartition(":")
    shutil.copy(path, tmp_path)
    with http_daemon(tmp_path, f"./{Path(path).name}:{name}", "--http-operations", "--log-level", "error") as url:
        run_schemathesis(url, tmp_path, "--max-examples", examples, *more)


def test_schemathesis_finds_nothing_wrong_in_operations_that_are_imported(tmp_path: Path) -> None:
    """Those of an app of FastAPI, which checks what it is sent itself."""
    for library in ("uvicorn", "jsonschema_rs", "yaml", "httpx"):
        pytest.importorskip(library)
    if subprocess.run([python(), "-P", "-c", "import fastapi, uvicorn"], capture_output=True, check=False).returncode:
        missing("DISCREET_OPENAPI_PYTHON has no fastapi and uvicorn")
    (tmp_path / "empty.py").write_text('from discreet import Service\n\nempty = Service("empty")\n')
    with imported_app() as (document, port):
        (tmp_path / "items.json").write_text(document)
        table = f'[import.items]\nopenapi = "items.json"\nbase-url = "http://127.0.0.1:{port}"\n'
        (tmp_path / "discreet.toml").write_text(f"{table}allow-private = true\nexpose = true\n")
        options = ["--config", "discreet.toml", "--http-operations", "--log-level", "error"]
        with http_daemon(tmp_path, "./empty.py:empty", *options) as url:
            run_schemathesis(url, tmp_path, "--max-examples", 12)


@contextmanager
def imported_app() -> Iterator[tuple[str, int]]:
    """The document of the app of FastAPI, and the port where it serves."""
    with subprocess.Popen([python(), str(HERE / "imported_app.py")], stdout=subprocess.PIPE, text=True) as app:
        assert app.stdout is not None
        try:
            yield app.stdout.readline(), int(app.stdout.readline())
        finally:
            app.terminate()


def run_schemathesis(url: str, folder: Path, *more: object) -> None:
    """All checks of all phases on the document of a daemon pass."""
    shutil.copy(HERE / "schemathesis_hooks.py", folder)
    (folder / "schemathesis.toml").write_text(CONFIG)
    checks = ["--checks", "all", "--mode", "all", "--seed", 1, "--no-shrink", *more]
    limits = ["--suppress-health-check", "all", "--request-timeout", 30, "--generation-database", "none"]
    told = run(
        *[python(), "-m", "schemathesis.cli", "run", f"{url}openapi.json", *checks, *limits],
        folder=folder,
        seconds=SLOW_SECONDS,
        SCHEMATHESIS_HOOKS="schemathesis_hooks",
        PYTHONPATH=str(folder),
    )
    for phase in ("Examples", "Coverage", "Fuzzing"):
        assert f"✅ {phase}" in told.replace("\ufe0f", "").replace("  ", " "), told[-4000:]
