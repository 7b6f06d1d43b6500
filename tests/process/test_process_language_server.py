"""The program as a language server: what it has loaded when it answers `initialize`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from support.programs import environment
from support.waits import DEADLINE_SECONDS

SERVER = """
import sys
from pathlib import Path
from discreet import Service, lsp, serve

words = Service("words", version="1")

@words.query("textDocument/hover", inline=True)
def hover(params: lsp.HoverParams, /) -> lsp.Hover | None: ...

try:
    serve(words, dialect="lsp")
finally:
    Path("loaded").write_text("\\n".join(sys.modules))
"""

NOT_NEEDED = {
    "argparse", "asyncio", "anyio", "discreet.dialects.lsp.generated.notebooks", "discreet.daemon.discovery",
}  # fmt: skip


def frame(**message: object) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def test_a_language_server_answers_initialize_before_it_loads_what_that_does_not_need(tmp_path: Path) -> None:
    (tmp_path / "words.py").write_text(SERVER)
    done = subprocess.run(
        [sys.executable, "-P", "words.py"],
        cwd=tmp_path,
        env=environment(),
        input=frame(id=1, method="initialize", params={"capabilities": {}}) + frame(method="exit"),
        capture_output=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )
    assert b'"hoverProvider":true' in done.stdout
    loaded = {*(tmp_path / "loaded").read_text().split("\n")}
    assert "discreet.dialects.lsp.session" in loaded
    assert loaded & NOT_NEEDED == set()
