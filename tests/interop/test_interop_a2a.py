"""The clients of a2a-sdk complete whole sessions with the gateway, with a token, over each binding that they speak.

`DISCREET_A2A_V1` and `DISCREET_A2A_V03` name Python interpreters that have `a2a-sdk` of 1.x and of 0.3.x.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from discreet.a2a.signing import CardKeys
from support.card_keys import private_pem, public_pem
from support.gateways import http_daemon
from support.requirements import missing
from support.waits import DEADLINE_SECONDS

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
TOKEN = "word-of-ann"
BINDINGS = ["JSONRPC", "HTTP+JSON"]

APP = """
import asyncio
import msgspec
from discreet.agents import Agent

class Words:
    async def execute(self, context, events):
        for word in context.text.split():
            if word == "wait":
                await asyncio.sleep(3600)
            elif word == "say":
                await events.artifact("said", artifact_id="a")
            else:
                await events.complete("done")

    async def cancel(self, context, events):
        pass

def extended(card, identity):
    return msgspec.structs.replace(card, name=f"Words of {identity.subject}")

agent = Agent(Words(), name="Words", description="Does as it is told.", extended=extended, input_modes=["*/*"])
"""


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """Of a gateway that knows one caller."""
    pytest.importorskip("httptools")
    pytest.importorskip("grpc")
    (tmp_path / "app.py").write_text(APP)
    known = f"ann:{hashlib.sha256(TOKEN.encode()).hexdigest()}"
    (tmp_path / "key.pem").write_text(private_pem("P-256"))
    flags = ("--token", known, "--push-private", "--card-key", str(tmp_path / "key.pem"), "--grpc", "127.0.0.1:0")
    with http_daemon(tmp_path, "./app.py:agent", *flags) as found:
        yield found


@pytest.fixture
def open_url(tmp_path: Path) -> Iterator[str]:
    """Of a gateway that takes anybody."""
    pytest.importorskip("httptools")
    (tmp_path / "app.py").write_text(APP)
    with http_daemon(tmp_path, "./app.py:agent") as found:
        yield found


def session(variable: str, script: str, *arguments: str) -> dict[str, str]:
    python = os.environ.get(variable) or missing(f"{variable} names no interpreter with a2a-sdk")
    done = subprocess.run(
        [python, HERE / script, *arguments],
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return {name: value for name, _, value in (line.partition("=") for line in done.stdout.splitlines())}


@pytest.mark.parametrize("binding", [*BINDINGS, "GRPC"])
def test_the_client_of_1_0_completes_a_session(url: str, binding: str) -> None:
    told = session("DISCREET_A2A_V1", "session_a2a.py", url, binding, TOKEN, public_pem("P-256"), private_pem("RSA"))
    theirs = json.loads(told.pop("signed by it"))
    assert CardKeys(public_pem("RSA")).verify(theirs) and not CardKeys(public_pem("P-384")).verify(theirs)
    assert told == {
        "signed": "True",
        "interface": "1.0",
        "send": "TASK_STATE_COMPLETED",
        "file": "00ff",
        "stream": "task artifact_update status_update",
        "started": "True",
        "subscribe": "task",
        "get": "True",
        "push": "c word True 1",
        "cancel": "TASK_STATE_CANCELED",
        "rest": "status_update",
        "delivered": "word TASK_STATE_CANCELED True",
        "deleted": "0",
        "list": "2 1 3",
        "extended": "Words of ann",
        "again": "TaskNotCancelableError",
        "unknown": "TaskNotFoundError",
        "wrong": "InvalidParamsError",
        "ended": "UnsupportedOperationError",
        "stranger": "A2AClientError",
    }


@pytest.mark.parametrize("binding", BINDINGS)
def test_the_client_of_0_3_completes_a_session(url: str, binding: str) -> None:
    jsonrpc = binding == "JSONRPC"
    assert session("DISCREET_A2A_V03", "session_a2a_0_3.py", url, binding, TOKEN) == {
        "interface": "0.3.0",
        "send": "completed",
        "file": "00ff",
        "stream": "Task TaskArtifactUpdateEvent TaskStatusUpdateEvent",
        "started": "True",
        "subscribe": "Task",
        "get": "True",
        "push": "c word True",
        "cancel": "canceled",
        "rest": "TaskStatusUpdateEvent",
        "delivered": "word canceled True",
        "extended": "Words of ann",
        "again": "-32002" if jsonrpc else "400",
        "unknown": "-32001" if jsonrpc else "404",
        "wrong": "-32602" if jsonrpc else "400",
        "stranger": "401",
    }


def test_the_http_json_client_of_1_0_speaks_0_3(open_url: str) -> None:
    assert session("DISCREET_A2A_V1", "session_a2a_1_for_0_3.py", open_url) == {
        "send": "TASK_STATE_COMPLETED",
        "file": "00ff",
        "stream": "task artifact_update status_update",
        "subscribe": "task",
        "get": "True",
        "push": "c https://example.com/hook t",
        "cancel": "TASK_STATE_CANCELED",
        "rest": "status_update",
        "again": "TaskNotCancelableError",
        "unknown": "TaskNotFoundError",
    }


DESCRIBE = """
import sys
from a2a.types import a2a_pb2
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.rpc import error_details_pb2, status_pb2

files = FileDescriptorSet()
for module in (status_pb2, error_details_pb2, a2a_pb2):
    module.DESCRIPTOR.CopyToProto(files.file.add())
open(sys.argv[1], "wb").write(files.SerializeToString())
"""


def test_the_description_of_the_protobuf_is_that_of_a2a_sdk(tmp_path: Path) -> None:
    pytest.importorskip("google.protobuf")
    (tmp_path / "a2a").mkdir()
    (tmp_path / "describe.py").write_text(DESCRIBE)
    session("DISCREET_A2A_V1", str(tmp_path / "describe.py"), str(tmp_path / "a2a" / "a2a.binpb"))
    spec = spec_from_file_location("a2a_description", ROOT / "tools" / "protocols" / "a2a.py")
    assert spec is not None and spec.loader is not None
    tool = module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert tool.generate(tmp_path) == (ROOT / tool.MODULE).read_bytes()


def test_the_programs_of_the_page_on_grpc_run_as_they_are(tmp_path: Path) -> None:
    pytest.importorskip("grpc")
    pytest.importorskip("httptools")
    greeter, ask = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "grpc.md").read_text("utf-8"), re.DOTALL)
    (tmp_path / "greeter.py").write_text(greeter)
    with http_daemon(tmp_path, "./greeter.py:agent", "--grpc", "127.0.0.1:0") as url:
        (tmp_path / "ask.py").write_text(ask.replace("http://127.0.0.1:8000/", url))
        python = os.environ.get("DISCREET_A2A_V1") or missing("DISCREET_A2A_V1 names no interpreter with a2a-sdk")
        done = subprocess.run(
            [python, tmp_path / "ask.py"], capture_output=True, text=True, timeout=DEADLINE_SECONDS, check=False
        )
    assert done.stdout.split() == ["task", "artifact_update", "status_update"], done.stderr
