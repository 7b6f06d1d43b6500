"""Several daemons behind one balancer, which share their keys: what one has begun, another one goes on with."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Annotated, Any

import pytest

from discreet import Service, mcp
from discreet.daemon.logs import RepeatedWarning
from discreet.dialects.mcp import seal
from support.asgi_client import AsgiClient
from support.logged_events import logged_events
from support.mcp_http import MODERN, McpHttp, budget, first
from support.vault import SECRET, digest

from ..conftest import Serve
from .conftest import SERVED, Works

pytestmark = pytest.mark.anyio

OLD, NEW = "old " * 10, "new " * 10
TOKENS = (f"ada:{digest(SECRET)}", f"bob:{digest('other-token')}")
ADA = {"authorization": f"Bearer {SECRET}"}
BOB = {"authorization": "Bearer other-token"}


def erasing() -> Service:
    service = Service("")

    @service.mutation
    async def erase(path: str, sure: Annotated[bool, mcp.Ask("Erase it?")]) -> str:
        return f"{path} {sure}"

    return service


@pytest.fixture
def key(tmp_path: Path) -> Path:
    file = tmp_path / "keys"
    file.write_text(f"{NEW}\n")
    return file


@pytest.fixture
async def replicas(serve: Serve, works: Works, key: Path) -> AsyncGenerator[tuple[AsgiClient, AsgiClient]]:
    async with AsyncExitStack() as stack:
        settings = {**SERVED, "mcp_key": str(key), "tokens": TOKENS}
        one, other = [await stack.enter_async_context(serve(works.service, erasing(), **settings)) for _ in range(2)]
        yield one, other


def moved(client: McpHttp, other: AsgiClient, **headers: str) -> McpHttp:
    """The same client, whose next requests reach another daemon."""
    found = McpHttp(other, client.revision, **(client.headers | headers))
    found.session = client.session
    return found


async def answer(client: McpHttp, state: str) -> Any:
    params = {
        "name": "erase",
        "arguments": {"path": "a"},
        "requestState": state,
        "inputResponses": {"sure": {"action": "accept", "content": {"sure": True}}},
    }
    return await client.post("tools/call", params)


async def asked(client: AsgiClient, **headers: str) -> str:
    """The state of a call that asks."""
    found = await McpHttp(client, MODERN, **headers).call("erase", path="a")
    assert found.result["resultType"] == "input_required"
    return str(found.result["requestState"])


async def test_an_answer_reaches_any_daemon_and_counts_for_its_caller_alone(
    replicas: tuple[AsgiClient, AsgiClient],
) -> None:
    one, other = replicas
    state = await asked(one, **ADA)
    assert (await answer(McpHttp(other, MODERN, **ADA), state)).result["content"][0]["text"] == "a True"
    assert (await answer(McpHttp(other, MODERN, **BOB), state)).code == -32602


async def test_the_log_alone_tells_another_key_from_a_forged_state(
    serve: Serve,
    works: Works,
    replicas: tuple[AsgiClient, AsgiClient],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one, _ = replicas
    state = await asked(one, **ADA)
    (tmp_path / "other").write_text(f"{OLD}\n")
    settings = {**SERVED, "mcp_key": str(tmp_path / "other"), "tokens": TOKENS}
    monkeypatch.setattr(seal, "_refused", {each: RepeatedWarning("mcp.state_refused") for each in seal._refused})
    async with serve(works.service, erasing(), **settings) as elsewhere:
        with logged_events("warn") as logged:
            unknown = (await answer(McpHttp(elsewhere, MODERN, **ADA), state)).json
            forged = (await answer(McpHttp(one, MODERN, **ADA), state[:-8] + "AAAAAAAA")).json
            told = [fields for name, fields in logged() if name == "mcp.state_refused"]
    assert unknown == forged
    assert [(each["reason"], "--mcp-key" in each.get("hint", "")) for each in told] == [
        ("another-key", True),
        ("damaged", False),
    ]


async def test_a_session_goes_on_at_any_daemon_and_for_its_caller_alone(
    replicas: tuple[AsgiClient, AsgiClient],
) -> None:
    one, other = replicas
    ours = McpHttp(one, "2025-06-18", **ADA)
    await ours.begin(roots={})
    there = moved(ours, other)
    assert (await there.call("work_add", a=1, b=2)).result["structuredContent"] == {"result": 3}
    assert (await moved(ours, other, **BOB).post("ping")).status == 404
    async with there.open(
        "tools/call", {"name": "work_ask", "arguments": {}}
    ) as reply:  # it knows what the client can do
        ((_, question),) = await first(reply)
        assert question["method"] == "roots/list"


async def test_a_session_that_was_idle_here_for_too_long_begins_again(serve: Serve, works: Works, key: Path) -> None:
    async with serve(works.service, **SERVED, mcp_key=str(key), http_max_sessions=1) as client:
        ours = McpHttp(client)
        await ours.begin()
        other = McpHttp(client)
        await other.begin()
        assert [(await each.post("ping")).status for each in (ours, other, ours)] == [200, 200, 200]
        assert budget(client).held("sessions") < 100_000


async def test_who_has_ended_a_session_does_not_find_it_again(replicas: tuple[AsgiClient, AsgiClient]) -> None:
    for client in replicas:
        ours = McpHttp(client, **ADA)
        await ours.begin()
        assert (await ours.delete()).status == 204
        assert (await ours.post("ping")).status == 404


@pytest.mark.parametrize(
    ("first", "second", "status"),
    [
        ([OLD], [OLD, NEW], 200),
        ([OLD, NEW], [NEW, OLD], 200),
        ([NEW, OLD], [OLD, NEW], 200),
        ([NEW, OLD], [NEW], 200),
        ([OLD], [NEW], 404),
        ([OLD], None, 404),
        (None, [OLD], 404),
        (None, None, 404),
    ],
)
async def test_keys_are_changed_by_letting_all_daemons_know_both(
    first: list[str] | None, second: list[str] | None, status: int, serve: Serve, works: Works, tmp_path: Path
) -> None:
    settings: list[dict[str, Any]] = []
    for number, lines in enumerate((first, second)):
        file = tmp_path / str(number)
        file.write_text("\n\n".join(lines or ()))
        settings.append(SERVED if lines is None else SERVED | {"mcp_key": str(file)})
    async with (
        serve(works.service, erasing(), **settings[0]) as one,
        serve(works.service, erasing(), **settings[1]) as other,
    ):
        ours = McpHttp(one)
        await ours.begin()
        assert (await ours.post("ping")).status == 200
        assert (await moved(ours, other).post("ping")).status == status
        answered = await answer(McpHttp(other, MODERN), await asked(one))
        assert answered.status == (200 if status == 200 else 400)


async def test_what_a_client_says_may_be_too_long_for_an_id(replicas: tuple[AsgiClient, AsgiClient]) -> None:
    one, other = replicas
    ours = McpHttp(one, **ADA)
    await ours.begin(experimental={"x": {"y": "z" * 2000}})
    assert len(ours.session) < 100
    assert (await ours.post("ping")).status == 200
    assert (await moved(ours, other).post("ping")).status == 404


@pytest.mark.parametrize(
    "change",
    [lambda text: text[:-4], lambda text: ("B" if text[0] == "A" else "A") + text[1:], lambda text: text * 200],
)
async def test_an_id_that_was_changed_is_no_session(change: Any, replicas: tuple[AsgiClient, AsgiClient]) -> None:
    one, other = replicas
    ours = McpHttp(one, **ADA)
    await ours.begin()
    ours.session = change(ours.session)
    assert (await moved(ours, other).post("ping")).status == 404


async def test_an_id_expires(replicas: tuple[AsgiClient, AsgiClient], monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = replicas
    monkeypatch.setattr("discreet.dialects.mcp.seal.SESSION_SECONDS", -1.0)
    ours = McpHttp(one, **ADA)
    await ours.begin()
    assert (await ours.post("ping")).status == 200
    assert (await moved(ours, other).post("ping")).status == 404


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "the file has 0 keys; 1 to 16 are expected, one in each line"),
        (b"x" * 40 + b"\nshort\n", "line 2 has 5 characters; a key has at least 32"),
        ((b"x" * 40 + b"\n") * 17, "the file has 17 keys; 1 to 16 are expected, one in each line"),
        (b"\xff" * 40, "its file can't be read: no UTF-8 text"),
    ],
)
def test_keys_that_are_none_are_one_line_at_the_start(content: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("from discreet import Service\napp = Service('')\n")
    (tmp_path / "keys").write_bytes(content)
    flags = ["--http", "127.0.0.1:0", "--http-mcp", "--no-stdio", "--mcp-key", "keys"]
    command = [sys.executable, "-P", "-m", "discreet", "serve", "./app.py:app", *flags]
    done = subprocess.run(command, cwd=tmp_path, input=b"", capture_output=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode() == f"discreet: --mcp-key: {said}\n"
