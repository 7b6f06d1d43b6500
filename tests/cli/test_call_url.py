"""`discreet call --url`: an agent that is served by HTTP, and what can be wrong with it, in one line each."""

from __future__ import annotations

import hashlib
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from support.gateways import http_daemon
from support.in_process import in_process
from support.programs import finished

APP = """
from discreet.agents import Agent

class Greeter:
    async def execute(self, context, events):
        await events.artifact(f"Hello, {context.text}!")
        await events.complete()

    async def cancel(self, context, events):
        pass

agent = Agent(Greeter(), name="Greeter", description="Greets.")
"""

TOKEN = "s3cr3t-of-ann"

MESSAGE = 'message={"messageId":"1","role":"ROLE_USER","parts":[{"text":"Ada"}]}'


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("url")
    (folder / "greeter.py").write_text(APP)
    return folder


@pytest.fixture(scope="module")
def url(place: Path) -> Iterator[str]:
    digest = hashlib.sha256(TOKEN.encode()).hexdigest()
    with http_daemon(place, "./greeter.py:agent", "--token", f"ann:{digest}") as served:
        yield served


def call(*words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return in_process("call", *words, stdin=stdin)


def closed_url() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"http://127.0.0.1:{listener.getsockname()[1]}/"


def test_a_call_and_a_stream_print_what_the_agent_answers(url: str) -> None:
    done = call("SendMessage", MESSAGE, "--url", url, "--token-file", "-", stdin=TOKEN)
    assert (done.returncode, done.stderr) == (0, "")
    assert msgspec.json.decode(done.stdout)["task"]["artifacts"][0]["parts"] == [{"text": "Hello, Ada!"}]
    other = MESSAGE.replace('"1"', '"2"')
    done = call("SendStreamingMessage", other, "--url", url, "--stream", "--token-file", "-", stdin=TOKEN)
    assert (done.returncode, done.stderr) == (0, "")
    assert [[*msgspec.json.decode(line)] for line in done.stdout.splitlines()] == [
        ["task"], ["artifactUpdate"], ["statusUpdate"],
    ]  # fmt: skip


def test_a_failure_is_one_line_and_a_status_of_its_own(url: str) -> None:
    for words, status in (
        (["GetTask", "id=x", "--url", url], 5),
        (["GetTask", "id=x", "--url", f"{url}elsewhere"], 4),
        (["GetTask", "id=x", "--url", closed_url()], 10),
        (["SendMesage", "--url", url], 4),
    ):
        done = call(*words)
        assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (status, "", 1), done.stderr
    assert "nearest: SendMessage" in done.stderr
    operation = call("shop/price", "--url", url)
    assert (operation.returncode, f"POST {url}operations/shop/price" in operation.stderr) == (4, True)


def test_a_missing_library_is_named_with_the_way_to_install_it() -> None:
    program = "import sys; sys.modules['h11'] = None; from discreet.cli.main import main; sys.exit(main(sys.argv[1:]))"
    done = finished([sys.executable, "-P", "-c", program, "call", "GetTask", "--url", "http://127.0.0.1:9/"])
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "discreet[http]" in done.stderr
