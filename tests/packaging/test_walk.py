"""The way of one request, as tools/walk.py prints it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from support.programs import environment
from support.waits import DEADLINE_SECONDS

ROOT = Path(__file__).parents[2]

APP = """
from discreet import Service

app = Service("")


@app.query(inline=True)
def echo(text: str) -> str:
    return text
"""


def test_an_inline_request_passes_no_file_outside_of_the_core(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP)
    command = [sys.executable, "-P", str(ROOT / "tools" / "walk.py"), "./app.py:app", "echo", '{"text": "%d"}']
    done = subprocess.run(
        command, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=DEADLINE_SECONDS, check=True
    )
    *files, total = done.stdout.splitlines()
    parts = {line.partition("/")[0] for line in files}
    assert {"daemon", "framing"} <= parts <= {"daemon", "errors", "framing"}
    assert total.startswith(f"{len(files)} files, ")
