"""What is wrong with the settings and the services is one line, and status 2."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from discreet import DeclarationError, Service
from discreet.http import asgi
from support.programs import environment
from support.waits import DEADLINE_SECONDS


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


def test_the_setting_needs_an_address(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("from discreet import Service\n\napp = Service('app')\n")
    done = subprocess.run(
        [sys.executable, "-P", "-m", "discreet", "serve", "./app.py:app", "--http-mcp", "--isolated"],
        cwd=tmp_path,
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
    )
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert "--http-mcp needs --http" in done.stderr
