"""`discreet call` among the tools of a shell: what goes into `jq`, and what a person reads where a handler fails."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from support.programs import environment, install_commands
from support.waits import DEADLINE_SECONDS

PAGE = Path(__file__).parents[2] / "docs" / "call.md"

APP = """
from collections.abc import AsyncIterator
from discreet import Service

shop = Service("shop")

@shop.query()
def broken() -> int:
    raise LookupError("the shelf is empty")

@shop.subscription()
async def counts() -> AsyncIterator[dict[str, int]]:
    for n in (1, 2, 3):
        yield {"n": n}
"""

needs_jq = pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "app.py").write_text(APP)
    return tmp_path


def sh(folder: Path, script: str) -> str:
    path = f"{install_commands(folder / 'bin')}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-c", script],
        cwd=folder,
        env=environment(PATH=path),
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@needs_jq
def test_the_loop_of_the_page_follows_all_pages(folder: Path) -> None:
    [script] = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    names = ["5", "a b.txt", "c", "true", "zz"]
    (folder / "docs").mkdir()
    for name in names:
        (folder / "docs" / name).touch()
    assert sh(folder, script).splitlines() == names


@needs_jq
def test_a_result_is_one_document_and_a_stream_a_line_per_event(folder: Path) -> None:
    assert sh(folder, "discreet call fs/list limit=1 | jq -c '.entries | length'") == "1\n"
    assert sh(folder, "discreet call shop/counts --stream --app ./app.py:shop | jq .n") == "1\n2\n3\n"
