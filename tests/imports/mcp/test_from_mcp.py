"""`from_mcp` and `[import.NAME] mcp = …`: what is chosen, what is wrong, what is kept, and how the server ends."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jsonschema_rs")

from discreet import DeclarationError, from_mcp
from discreet.client import connect
from discreet.imports.configured import service_of
from discreet.testing import in_memory
from support.command_lines import load_settings
from support.waits import until, wait_until

from .conftest import odd

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(sys.platform == "win32", reason="signals and groups of POSIX")]


def names(*modes: str, **options: Any) -> list[str]:
    service = from_mcp(odd(*modes).words, namespace="odd", **options)
    return [spec.name for spec in service.operations]


def test_operations_are_chosen_by_their_names_and_renamed() -> None:
    assert names("typed") == ["odd/act", "odd/typed_tool"]
    assert names("typed", include=["t*"]) == ["odd/typed_tool"]
    assert names("typed", exclude=["t*"]) == ["odd/act"]
    assert names("typed", rename={"typed_tool": "typed"}, include=["typed"]) == ["odd/typed"]


async def test_what_was_chosen_and_renamed_holds_for_what_comes_later() -> None:
    service = from_mcp(odd("typed").words, namespace="odd", expose=True, rename={"act": "do"}, exclude=["typed*"])
    async with in_memory(service) as peer:
        for name in ("typed_hidden", "later"):
            await peer.call("odd/do", {"do": "add", "name": name})

        async def listed() -> bool:
            return "odd/later" in [each["name"] for each in await peer.call("services/list")]

        await until(listed)
        assert "odd/typed_hidden" not in str(await peer.call("services/list"))
        assert json.loads((await peer.call("odd/later", {"a": 1}))["content"][0]["text"]) == {"a": 1}


@pytest.mark.parametrize(
    ("server", "options", "why"),
    [
        (["/nowhere/at/all"], {}, "can't run /nowhere/at/all"),
        (odd("2099-01-01").words, {}, "no revision of MCP"),
        (odd().words, {"rename": {"axt": "b"}}, "there is no operation axt"),
        (odd().words, {"rename": {"act": "no name"}}, "a name consists of"),
        (odd("typed").words, {"rename": {"act": "typed_tool"}}, "two operations would be called"),
        (odd().words, {"expose": ["act", "nope_*"]}, "expose: no operation is called nope_*"),
        (odd().words, {"include": ["ac"]}, "include: no operation is called ac; nearest: act"),
        (odd().words, {"exclude": ["nope"]}, "exclude: no operation is called nope"),
        (["cat"], {}, "MCP server cat: "),
    ],
)
def test_what_is_wrong_is_told_in_one_line(server: Any, options: dict[str, Any], why: str) -> None:
    with pytest.raises(DeclarationError) as caught:
        from_mcp(server, **{"namespace": "odd", **options})
    assert why in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_was_read_is_used_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    script = tmp_path / "server.py"
    script.write_bytes(Path(odd().words[3]).read_bytes())
    command = [sys.executable, "-I", "-S", str(script)]
    assert len(from_mcp(command, namespace="odd", max_age=60).operations) == 1
    script.unlink()
    assert len(from_mcp(command, namespace="odd", max_age=60).operations) == 1
    with pytest.raises(DeclarationError):
        from_mcp(command, namespace="odd")


# -- in a process --------------------------------------------------------------------------------------------------


async def test_a_command_of_a_settings_file_runs_in_its_folder_with_its_environment(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_bytes(Path(odd().words[3]).read_bytes())
    command = [sys.executable, "-I", "-S", "server.py"]
    text = f"[import.odd]\nmcp = {json.dumps(command)}\nexpose = true\nenv = {{ ODD = 'yes' }}\nmax-age = 0\n"
    (tmp_path / "discreet.toml").write_text(text)
    (made,) = load_settings([f"--config={tmp_path / 'discreet.toml'}"], {}, os.getcwd()).imports
    assert [spec.name for spec in service_of(made, {}).operations] == ["odd/act"]
    assert (made.cwd, made.env) == (str(tmp_path), {"ODD": "yes"})


async def test_a_server_outlives_no_daemon_that_is_killed(tmp_path: Path) -> None:
    command = json.dumps(list(odd().words))
    (tmp_path / "discreet.toml").write_text(f"[import.odd]\nmcp = {command}\nexpose = true\n")
    app = tmp_path / "app.py"
    app.write_text(
        "import os\nfrom discreet import Service\nown = Service('own')\n"
        "@own.query\ndef pid() -> int:\n    return os.getpid()\n"
    )
    serve = [sys.executable, "-P", "-m", "discreet", "serve", f"{app}:own", "--config", str(tmp_path / "discreet.toml")]
    async with connect(serve) as peer:
        pid = int((await peer.call("odd/act", {"do": "pid"}))["content"][0]["text"])
        os.kill(await peer.call("own/pid"), signal.SIGKILL)
        wait_until(lambda: has_ended(pid))


def has_ended(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False
