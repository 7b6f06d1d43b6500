"""The units, the container and the proxies of the HTTP example do what they say, with the tools that the machine has."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from discreet.a2a.types import new_id
from support.gateways import http_daemon
from support.postgres import free_port
from support.programs import environment, install_commands
from support.proxies import nginx_command, program
from support.waits import DEADLINE_SECONDS, wait_until

httpx = pytest.importorskip("httpx")
pytest.importorskip("httptools")

EXAMPLE = Path(__file__).parents[2] / "examples" / "http"
TOKEN = "word-of-ann"
KNOWN = f"ann:{hashlib.sha256(TOKEN.encode()).hexdigest()}"
PUBLIC = "https://agents.example/countdown/"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="systemd and containers are Linux")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With the example, and programs that stand for what is installed."""
    shutil.copy(EXAMPLE / "countdown.py", tmp_path)
    install_commands(tmp_path / "bin", python="")
    return tmp_path


def placed(text: str, folder: Path) -> str:
    return text.replace("/opt/countdown/bin", str(folder / "bin")).replace("/opt/countdown/app", str(folder))


def test_systemd_finds_nothing_wrong_with_the_unit(folder: Path) -> None:
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd-analyze is not installed")
    unit = folder / "countdown.service"
    unit.write_text(placed((EXAMPLE / unit.name).read_text(encoding="utf-8"), folder))
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_the_command_of_the_unit_serves_and_says_so(folder: Path) -> None:
    text = (EXAMPLE / "countdown.service").read_text(encoding="utf-8").replace("\\\n", " ")
    (command,) = re.findall(r"^ExecStart=(.*)$", placed(text, folder), re.MULTILINE)
    port = free_port()
    command = command.replace(":8000", f":{port}").replace("/var/lib/countdown", str(folder))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(folder / "notify"))
        manager.settimeout(DEADLINE_SECONDS)
        env = environment(NOTIFY_SOCKET=str(folder / "notify"), DISCREET_TOKEN=KNOWN)
        with subprocess.Popen(command.split(), env=env, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE) as daemon:
            assert manager.recv(100).startswith(b"READY=1")
            wait_until(lambda: connects(port))
            card = httpx.get(f"http://127.0.0.1:{port}/.well-known/agent-card.json", headers={"A2A-Version": "1.0"})
            assert card.json()["supportedInterfaces"][0]["url"] == PUBLIC
            daemon.terminate()
            assert manager.recv(100).startswith(b"STOPPING=1")
            daemon.communicate(timeout=DEADLINE_SECONDS)
    assert daemon.returncode == 0


def connects(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_the_health_check_of_the_container_finds_what_its_command_starts(folder: Path) -> None:
    port = free_port()
    text = placed((EXAMPLE / "Containerfile").read_text(encoding="utf-8"), folder).replace(":8000", f":{port}")
    (check,) = re.findall(r"^HEALTHCHECK .* CMD (.*)$", text, re.MULTILINE)
    (entry,) = re.findall(r"^ENTRYPOINT (.*)$", text, re.MULTILINE)

    def healthy() -> bool:
        return subprocess.run(json.loads(check), env=environment(), capture_output=True, check=False).returncode == 0

    assert not healthy()
    env = environment(DISCREET_TOKEN=KNOWN)
    with subprocess.Popen(json.loads(entry), env=env, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as daemon:
        try:
            wait_until(healthy)
        finally:
            daemon.terminate()


def test_without_a_token_the_container_says_in_one_line_what_is_missing(folder: Path) -> None:
    (entry,) = re.findall(r"^ENTRYPOINT (.*)$", (EXAMPLE / "Containerfile").read_text(encoding="utf-8"), re.MULTILINE)
    command = json.loads(placed(entry, folder).replace(":8000", ":0"))
    done = subprocess.run(command, env=environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "--token" in done.stderr


@contextmanager
def nginx(folder: Path, upstream: str, port: int) -> Iterator[None]:
    """In front, as the example says, without TLS."""
    text = re.sub(r"\n *ssl_\w+ .*;", "", (EXAMPLE / "nginx.conf").read_text(encoding="utf-8"))
    assert "listen 443 ssl;" in text
    text = text.replace("listen 443 ssl;", f"listen 127.0.0.1:{port};").replace("127.0.0.1:8000", upstream)
    with started(nginx_command(text, folder), folder, port):
        yield


@contextmanager
def caddy(folder: Path, upstream: str, port: int) -> Iterator[None]:
    """The same with Caddy."""
    text = (EXAMPLE / "Caddyfile").read_text(encoding="utf-8").replace("127.0.0.1:8000", upstream)
    assert "\nagents.example {" in text
    text = text.replace("\nagents.example {", f"\nhttp://agents.example:{port} {{\n\tbind 127.0.0.1")
    (folder / "Caddyfile").write_text("{\n\tadmin off\n}\n" + text)
    with started(["caddy", "run", "--config", str(folder / "Caddyfile")], folder, port):
        yield


@contextmanager
def started(command: list[str], folder: Path, port: int) -> Iterator[None]:
    homes = dict.fromkeys(("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"), str(folder))
    with program(command, folder, **homes) as proxy:
        wait_until(lambda: proxy.poll() is not None or connects(port))
        assert proxy.poll() is None, (folder / "log").read_text()
        yield


def message(text: str) -> Any:
    return {"message": {"messageId": new_id(), "role": "ROLE_USER", "parts": [{"text": text}]}}


@pytest.mark.parametrize("proxy", [nginx, caddy])
def test_behind_a_proxy_each_event_comes_when_it_happens(
    proxy: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if proxy is caddy and not shutil.which("caddy"):
        pytest.skip("caddy is not installed")
    monkeypatch.setenv("COUNTDOWN_PAUSE", "3600")
    port = free_port()
    options = ("--token", KNOWN, "--http-url", PUBLIC)
    headers = {"A2A-Version": "1.0", "Host": "agents.example", "Authorization": f"Bearer {TOKEN}"}
    with (
        http_daemon(folder, "./countdown.py:agent", *options) as url,
        proxy(folder, url.removeprefix("http://").rstrip("/"), port),
        httpx.Client(base_url=f"http://127.0.0.1:{port}/countdown", headers=headers, timeout=DEADLINE_SECONDS) as http,
    ):
        card = http.get("/.well-known/agent-card.json").json()
        assert {each["url"] for each in card["supportedInterfaces"]} == {PUBLIC}
        assert http.get("/tasks", headers={"Authorization": ""}).status_code == 401
        with http.stream("POST", "/message:stream", json=message("2")) as stream:
            events = (json.loads(line.removeprefix("data: ")) for line in stream.iter_lines() if line[:5] == "data:")
            task = next(events)["task"]
            assert next(events)["artifactUpdate"]["artifact"]["parts"] == [{"text": "2"}]
            assert http.post(f"/tasks/{task['id']}:cancel", json={}).status_code == 200
            assert [event["statusUpdate"]["status"]["state"] for event in events] == ["TASK_STATE_CANCELED"]
        reply = http.post("/", json={"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": task["id"]}})
        assert reply.json()["result"]["status"]["state"] == "TASK_STATE_CANCELED"
