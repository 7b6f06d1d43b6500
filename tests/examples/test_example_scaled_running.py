"""What the compose file starts works together: its commands run as processes on loopback, behind its nginx, on one database."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from discreet.a2a.types import new_id
from support.postgres import Server, free_port, running_server
from support.programs import install_commands
from support.proxies import nginx_command, program
from support.scaled import SCALED, entrypoint, services
from support.waits import DEADLINE_SECONDS, wait_until

httpx = pytest.importorskip("httpx")
pytest.importorskip("httptools")
pytest.importorskip("prometheus_client")

TOKEN = "word-of-ann"
SHA256 = "632157f4b3e6beb81de6d13c3d0168dd592846bdc6dcf33b6a4e138d8ab53aa5"
HEADERS = {"A2A-Version": "1.0", "Authorization": f"Bearer {TOKEN}"}

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="containers are Linux")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running_server() as server:
        database = services({})["database"]["environment"]
        user, name = database["POSTGRES_USER"], database["POSTGRES_DB"]
        with server.connect() as connection:
            connection.execute(f"CREATE ROLE {user} LOGIN")
            connection.execute(f"CREATE DATABASE {name} OWNER {user}")
        yield server


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With the app, and programs that stand for what is installed in the image."""
    shutil.copy(SCALED / "counter.py", tmp_path)
    install_commands(tmp_path / "bin", python="")
    return tmp_path


@contextmanager
def daemons(role: str, server: Server, folder: Path) -> Iterator[list[str]]:
    """As many as the compose file says, until the block ends. Yields where they listen, once all are ready."""
    service = services({"DISCREET_TOKEN": f"ann:{SHA256}", "PGPASSWORD": "known"})[role]
    variables = dict(service["environment"])
    variables["DISCREET_STORE"] = variables["DISCREET_STORE"].replace("@database/", f"@127.0.0.1:{server.port}/")
    with ExitStack() as running:
        places = [started(running, service["command"], variables, folder) for _ in range(service["scale"])]
        for place in places:
            wait_until(lambda: ready(place))
        yield places


def started(running: ExitStack, arguments: list[str], variables: dict[str, str], folder: Path) -> str:
    place = f"127.0.0.1:{free_port()}"
    command = [
        part.replace("/opt/counter/bin", str(folder / "bin"))
        .replace("/opt/counter/app", str(folder))
        .replace("0.0.0.0:8000", place)
        for part in (*entrypoint(), *arguments)
    ]
    running.enter_context(program(command, folder, COUNTER_PAUSE="0.01", **variables))
    return place


def ready(place: str) -> bool:
    try:
        return bool(httpx.get(f"http://{place}/readyz").status_code == 200)
    except httpx.TransportError:
        return False


@contextmanager
def proxy(fronts: list[str], folder: Path) -> Iterator[str]:
    """nginx with the file of the example. Yields its URL."""
    port = free_port()
    text = (SCALED / "nginx.conf").read_text(encoding="utf-8")
    assert text.count("server front:8000;") == text.count("listen 8000;") == 1
    text = text.replace("server front:8000;", " ".join(f"server {front};" for front in fronts))
    text = text.replace("listen 8000;", f"listen 127.0.0.1:{port};")
    with program(nginx_command(text, folder), folder):
        wait_until(lambda: answers(f"http://127.0.0.1:{port}"))
        yield f"http://127.0.0.1:{port}"


def answers(url: str) -> bool:
    try:
        return bool(httpx.get(f"{url}/healthz").status_code == 200)
    except httpx.TransportError:
        return False


def message(text: str) -> Any:
    said = {"messageId": new_id(), "role": "ROLE_USER", "parts": [{"text": text}]}
    return {"message": said, "configuration": {"returnImmediately": True}}


def metric(place: str, name: str) -> float:
    """What this daemon says."""
    text = httpx.get(f"http://{place}/metrics", headers=HEADERS).text
    (value,) = re.findall(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE)
    return float(value)


def numbers(task: Any) -> str:
    return "".join(part["text"] for part in task["artifacts"][0]["parts"])


def test_what_the_fronts_take_waits_for_workers_and_is_done_by_them(server: Server, folder: Path) -> None:
    with ExitStack() as running:
        fronts = running.enter_context(daemons("front", server, folder))
        url = running.enter_context(proxy(fronts, folder))
        http = running.enter_context(httpx.Client(base_url=url, headers=HEADERS, timeout=DEADLINE_SECONDS))
        begun = [http.post("/message:send", json=message("5")).json()["task"]["id"] for _ in range(6)]
        for front in fronts:
            wait_until(lambda: metric(front, "discreet_tasks_queued") == len(begun))
        stream = running.enter_context(http.stream("POST", f"/tasks/{begun[0]}:subscribe"))
        running.enter_context(daemons("worker", server, folder))
        pieces = re.findall(r'"text":"(\d+ )"', "".join(stream.iter_lines()))
        assert "".join(pieces) == "1 2 3 4 5 "
        for task_id in begun:
            wait_until(lambda: state(http, task_id) == "TASK_STATE_COMPLETED")
            assert numbers(http.get(f"/tasks/{task_id}").json()) == "1 2 3 4 5 "
        for front in fronts:
            wait_until(lambda: metric(front, "discreet_tasks_queued") == 0)
        assert http.get("/metrics").status_code == 404
        assert http.get("/tasks", headers={"Authorization": ""}).status_code == 401


def state(http: Any, task_id: str) -> str:
    found: str = http.get(f"/tasks/{task_id}").json()["status"]["state"]
    return found
