"""The page on HTTP tells the truth: its programs run, its commands print what is shown, its events and limits are those of the code."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import pytest

from discreet.daemon.settings.table import OPTIONS
from discreet.gateway.streams import MAX_UNDELIVERED
from support.gateways import http_daemon
from support.pages import DIFFERS, ROOT, Page, played

httpx = pytest.importorskip("httpx")
pytest.importorskip("httptools")
protocol = pytest.importorskip("discreet.gateway.server.protocol")

DOCUMENT = Page("docs/http.md")
PAGE = DOCUMENT.text
CUT_ID = re.compile(r"(?<=\"taskId\":\")[0-9a-f-]+$", re.MULTILINE)
REST_OF_TASK = re.compile(r"(?<=\{\"task\":\{\"id\":\")<id>.*")
LOGGED = re.compile(r"\b(?:log\.\w+|RepeatedWarning)\(\s*\"(http\.\w+)\"")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return DOCUMENT.install(tmp_path)


def plain(text: str) -> str:
    for differing, name in (*DIFFERS, (CUT_ID, "<cut>")):
        text = differing.sub(name, text)
    return "\n".join(REST_OF_TASK.sub("<id>", line) if len(line) < 80 else line for line in text.splitlines())


@pytest.mark.skipif(sys.platform == "win32", reason="the console blocks are for a POSIX shell")
def test_the_commands_print_what_is_shown(folder: Path) -> None:
    assert len(DOCUMENT.sessions) == 3
    with http_daemon(folder, "./greeter.py:agent") as url:
        for command, shown in DOCUMENT.sessions:
            assert plain(played(command, url, folder)).strip() == shown, command


@pytest.mark.anyio
async def test_the_mounted_agent_answers_below_its_path(
    folder: Path, monkeypatch: pytest.MonkeyPatch, anyio_backend_name: str
) -> None:
    monkeypatch.syspath_prepend(str(folder))
    app = runpy.run_path(str(folder / "web.py"))["app"]
    message = {"messageId": "1", "role": "ROLE_USER", "parts": [{"text": "Ada"}]}
    transport = httpx.ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://localhost", headers={"A2A-Version": "1.0"}) as client,
    ):
        card = (await client.get("/greeter/.well-known/agent-card.json")).json()
        assert {each["url"] for each in card["supportedInterfaces"]} == {"http://localhost/greeter/"}
        call = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
        task = (await client.post("/greeter/", json=call)).json()["result"]["task"]
        found = (await client.get(f"/greeter/tasks/{task['id']}")).json()
    assert found["artifacts"][0]["parts"] == [{"text": "Hello, Ada!"}]
    sys.modules.pop("greeter", None)


def test_every_event_of_the_gateway_has_its_row() -> None:
    code = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "gateway").rglob("*.py"))
    logged = set(LOGGED.findall(code))
    table = PAGE.partition("\n## What the log tells\n")[2]
    named = set(re.findall(r"`(http\.\w+)`", table))
    assert len(logged) >= 6
    assert named == logged


def test_the_limits_are_those_of_the_settings() -> None:
    defaults = {option.flag: option.default for option in OPTIONS}
    rows = DOCUMENT.rows("Limits")
    for _, text, flag, _ in rows:
        number, _, unit = text.replace(",", "").partition(" ")
        assert float(number) * {"MiB": 1024 * 1024}.get(unit, 1) == defaults[flag.strip("`")], flag
    assert len(rows) == 6
    assert f"After {MAX_UNDELIVERED} events" in PAGE
    assert f"kept for {protocol.IDLE_SECONDS} seconds" in re.sub(r"\s+", " ", PAGE)
