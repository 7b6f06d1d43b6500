"""Starting in a stranger's folder, or in one that callers write to, runs nothing of what is in there."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest

import discreet
from discreet.client.blocking import connect
from discreet.daemon.settings import OPTIONS
from discreet.framing.stdio_guard import NULL_DEVICE_HINT
from support.waits import DEADLINE_SECONDS

HOME = os.path.dirname(os.path.dirname(discreet.__file__))
OPTIONAL = {
    *("ahocorasick_rs", "certifi", "colorama", "h11", "httpcore", "httptools", "httpx", "rich", "starlette", "trio"),
    *("uvicorn", "uvloop", "watchfiles"),
}
OF_TOOLS = {"conftest", "setup", "sitecustomize", "usercustomize", "shop", "evil"}
OURS = {"discreet", "a2a", "agents", "client", "daemon", "dialects", "errors", "files", "framing", "gateway", "imports"}
NAMES = sys.stdlib_module_names | set(packages_distributions()) | OPTIONAL | OF_TOOLS | OURS
"""Whatever anything here could import, now or later, and what the settings below name."""

HOSTILE = {
    "switch": "true",
    "integer": "1",
    "seconds": "1",
    "directory": '"."',
    "file": '"stolen.log"',
    "readable": '"shop.py"',
    "word": '"evil"',
    "words": '["*"]',
    "tokens": f'["a:{"0" * 64}"]',
    "files": '["key=shop.py"]',
    "object": '"evil:obj"',
    "apps": '["shop:shop", "./evil.py:app"]',
    "imports": '["evil=evil.json"]',
    "store": '"sqlite:stolen.db"',
    "address": '"0.0.0.0:8000"',
    "url": '"http://evil.example/"',
    "keys": '"https://evil/keys"',
    "dialect": '"lsp"',
}
"""Values, by their kind, that would do harm."""

UNSAFE = {
    option.key: HOSTILE.get(option.kind, f'"{option.choices[-1] if option.choices else ""}"')
    for option in OPTIONS
    if option.row.found_file == "no"
}
SETTINGS = "".join(f"{key} = {value}\n" for key, value in UNSAFE.items())

SERVE = shlex.join([sys.executable, "-P", "-m", "discreet", "serve"])
VERBS: Mapping[str, int] = {
    "serve": 0,
    "serve --reload": 0,
    "serve --isolated": 0,
    "serve shop:shop": 2,
    "serve --identity evil:obj": 2,
    "call fs/list": 0,
    "--complete 'discreet call fs/'": 0,
    f"call fs/list --server '{SERVE}'": 0,
    "call fs/list --app shop:shop": 2,
    "card": 0,
    "schema": 0,
    "schema shop:shop": 2,
    "generate python": 0,
    f"generate typescript --server '{SERVE}'": 0,
    "doctor": 0,
    "attach 1": 2,
    "doctor shop:shop": 1,
    "demo": 0,
    f"record -o ../session.jsonl -- {SERVE}": 0,
    f"replay ../empty.jsonl -- {SERVE}": 2,
    "completion bash": 0,
    "--version": 0,
    "--help": 0,
}


def code(trap: Path) -> str:
    """Module code that tells of its having been run, with nothing but built-in functions."""
    return f"with open({str(trap)!r}, 'a') as trap: trap.write(__name__ + '\\n')\napp = shop = obj = None\n"


def environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DISCREET_")}
    return {**kept, "PYTHONPATH": HOME, "PYTHONDONTWRITEBYTECODE": "1", **more}


@pytest.fixture
def trap(tmp_path: Path) -> Iterator[Path]:
    """A file that hostile code writes to; it has to be missing at the end of the test."""
    path = tmp_path / "trap"
    yield path
    assert not path.exists(), path.read_text()


@pytest.fixture
def folder(tmp_path: Path, trap: Path) -> Path:
    folder = tmp_path / "foreign"
    folder.mkdir()
    for name in NAMES:
        (folder / f"{name}.py").write_text(code(trap))
    for name in OURS | {"evil_package"}:
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text(code(trap))
        (folder / name / "__main__.py").write_text(code(trap))
    (folder / "evil-1.0.dist-info").mkdir()
    (folder / "evil-1.0.dist-info" / "entry_points.txt").write_text("[anything]\nevil = evil:app\n")
    return folder


@pytest.fixture
def program(tmp_path: Path) -> str:
    """The program as pip installs it, which Python starts without `-P`."""
    path = tmp_path / "bin" / "discreet"
    path.parent.mkdir()
    path.write_text(f"#!{sys.executable}\nimport sys\nfrom discreet.__main__ import main\nsys.exit(main())\n")
    path.chmod(0o755)
    return str(path)


def run(command: list[str], folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    options: Any = {"cwd": folder, "env": environment(**more), "timeout": DEADLINE_SECONDS}
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, **options)


@pytest.mark.parametrize("words", VERBS)
def test_no_verb_runs_anything_of_the_folder(words: str, folder: Path, program: str) -> None:
    (folder / "discreet.toml").write_text(SETTINGS)
    done = run([program, *shlex.split(words)], folder)
    assert done.returncode == VERBS[words], done.stderr
    assert "Traceback" not in done.stderr
    assert not list(folder.glob("stolen*"))


@pytest.mark.parametrize("name", ["discreet.toml", "pyproject.toml"])
def test_a_server_starts_in_the_folder_whatever_its_file_sets_and_says_so_in_one_line(
    name: str, folder: Path, program: str
) -> None:
    (folder / name).write_text(("[tool.discreet]\n" if name == "pyproject.toml" else "") + SETTINGS)
    done = run([program, "serve"], folder)
    assert done.returncode == 0
    line, ended = done.stderr.splitlines()
    assert all(key in line for key in UNSAFE)
    assert ended.endswith(NULL_DEVICE_HINT)
    assert run([program, "serve", "--isolated"], folder).stderr == ended + "\n"


@pytest.mark.parametrize(("python_path", "flags"), [("", ()), (".", ()), ("lib", ()), (".", ("-P",))])
def test_what_depends_on_the_working_directory_is_taken_off_the_path(
    python_path: str, flags: tuple[str, ...], tmp_path: Path, trap: Path
) -> None:
    """Python itself may import from there before it is our turn; nothing does so afterwards."""
    (tmp_path / "lib").mkdir()
    for place in (tmp_path, tmp_path / "lib"):
        for name in ("msgspec", "argparse", "watchfiles", "evil"):
            (place / f"{name}.py").write_text(code(trap))
    paths = {"PYTHONPATH": os.pathsep.join([HOME, python_path])}
    command = [sys.executable, *flags, "-m", "discreet"]
    assert run([*command, "serve"], tmp_path, **paths).returncode == 0
    assert run([*command, "serve", "evil:app"], tmp_path, **paths).returncode == 2


def test_an_absolute_entry_of_the_path_stays_even_if_it_is_the_working_directory(tmp_path: Path) -> None:
    (tmp_path / "own_app.py").write_text("from discreet import Service\napp = Service('own')\n")
    command = [sys.executable, "-P", "-m", "discreet", "serve", "own_app:app"]
    assert run(command, tmp_path, PYTHONPATH=os.pathsep.join([HOME, str(tmp_path)])).returncode == 0


@pytest.mark.parametrize("app", [(), ("./mine.py:mine",)], ids=["fs", "an app"])
def test_what_a_caller_writes_is_not_run(app: tuple[str, ...], tmp_path: Path, trap: Path, program: str) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "mine.py").write_text(
        "from discreet import Service\nfrom discreet.files.service import file_service\n"
        "mine = file_service('.', allow_write=True)\n"
    )
    command = [program, "serve", *app, "--allow-write"]
    options: Any = {"cwd": root, "env": environment(), "stderr": "collect", "timeout": DEADLINE_SECONDS}
    with connect(command, **options) as peer:
        for name in sorted(NAMES):
            peer.call("fs/write", {"path": f"{name}.py", "content": code(trap)})
        peer.call("fs/write", {"path": "discreet.toml", "content": SETTINGS})
        use(peer)
    if not app:  # whoever may write an app's folder may write the app
        with connect(command, **options) as peer:
            use(peer)


def use(peer: Any) -> None:
    """Whatever loads something late."""
    with peer.subscribe("fs/watch", {"path": "."}) as events:
        peer.call("fs/write", {"path": "changed.txt", "content": "x"})
        next(iter(events))
    peer.call("fs/search", {"query": "x", "glob": "*.txt"})
    peer.call("rpc.discover")
    message = {"messageId": "1", "role": "ROLE_USER", "parts": [{"data": {"skill": "fs/stat", "input": {"path": "."}}}]}
    peer.call("SendMessage", {"message": message})
