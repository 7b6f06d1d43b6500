"""`discreet call`: results on stdout, and an exit status per class of error."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from support.in_process import in_process
from support.programs import environment, finished
from support.waits import DEADLINE_SECONDS

SERVER = r"""
import json, os, sys, time

def read():
    length = 0
    while (line := sys.stdin.buffer.readline()).strip():
        length = int(line.removeprefix(b"Content-Length: "))
    return json.loads(sys.stdin.buffer.read(length)) if length else None

def write(message):
    body = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    sys.stdout.buffer.flush()

while request := read():
    params = request.get("params")
    if request["method"] == "services/subscribe":
        request["method"], params = params["operationId"], params["input"]
    match request["method"]:
        case "echo":
            write({"id": request["id"], "result": params})
        case "fail":
            write({"id": request["id"], "error": params})
        case "count":
            for seq in range(1, params["to"] + 1):
                write({"method": "stream/event", "params": {"id": request["id"], "seq": seq, "value": {"n": seq}}})
            write({"id": request["id"], "result": {"completed": True, "events": params["to"]}})
        case "services/list":
            write({"id": request["id"], "result": [{"name": "once", "kind": "query"}]})
        case "once" | "once more":
            with open(params["mark"], "a+") as mark:
                mark.write("x")
                mark.seek(0)
                runs = len(mark.read())
            if runs == 1:
                os._exit(3)
            write({"id": request["id"], "result": runs})
        case "busy":
            data = {"code": "OVERLOADED", "retryable": True, "details": {"retryAfterMs": 1}}
            write({"id": request["id"], "error": {"code": -32000, "message": "Server overloaded", "data": data}})
        case "die":
            os._exit(3)
        case "garbage":
            print("Segmentation fault", flush=True)
        case "hang":
            print("hanging", file=sys.stderr, flush=True)
        case "words":
            print("for people", file=sys.stderr, flush=True)
            write({"id": request["id"], "result": None})
"""


def command(*words: str) -> list[str]:
    return [sys.executable, "-P", "-m", "discreet", "call", *words]


@pytest.fixture
def fake(tmp_path: Path) -> str:
    script = tmp_path / "server.py"
    script.write_text(SERVER)
    return f"--server={shlex.join([sys.executable, '-I', '-S', str(script)])}"


def call(*words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return in_process("call", *words, folder=cwd)


def test_a_result_is_one_line_of_json_when_piped(fake: str) -> None:
    done = finished(command("echo", "a=1", "b=two", 'c={"x": [1,  2]}', fake))
    assert (done.returncode, done.stdout, done.stderr) == (0, '{"a":1,"b":"two","c":{"x":[1,2]}}\n', "")


def on_a_terminal(*words: str, **variables: str) -> str:
    """What the call writes to a terminal."""
    ours, theirs = os.openpty()
    given = {name: value for name, value in environment().items() if name not in {"NO_COLOR", "FORCE_COLOR"}}
    environ = given | {"TERM": "xterm-256color", **variables}
    done = subprocess.run(command(*words), check=False, stdout=theirs, env=environ, timeout=DEADLINE_SECONDS)
    os.close(theirs)
    shown = os.read(ours, 4096)
    os.close(ours)
    assert done.returncode == 0
    return shown.decode()


@pytest.fixture
def without_rich(tmp_path: Path) -> dict[str, str]:
    """Variables with which rich can't be imported."""
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "rich.py").write_text("raise ImportError")
    return {"PYTHONPATH": environment(tmp_path / "hidden")["PYTHONPATH"]}


STYLES = re.compile(r"\x1b\[[0-9;]*m")

needs_a_terminal = pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")


@needs_a_terminal
def test_a_result_is_indented_on_a_terminal(fake: str, without_rich: dict[str, str]) -> None:
    assert on_a_terminal("echo", "a=1", fake, **without_rich) == '{\r\n  "a": 1\r\n}\r\n'


@needs_a_terminal
@pytest.mark.needs("rich")
def test_with_rich_a_result_is_coloured_on_a_terminal_and_says_the_same(fake: str) -> None:
    shown = on_a_terminal("echo", "a=9007199254740993", f"b={'x' * 200}", fake)
    assert "\x1b[" in shown
    assert STYLES.sub("", shown) == '{\r\n  "a": 9007199254740993,\r\n  "b": "' + "x" * 200 + '"\r\n}\r\n'


@needs_a_terminal
@pytest.mark.needs("rich")
def test_no_color_is_honoured(fake: str) -> None:
    shown = on_a_terminal("echo", "a=1", fake, NO_COLOR="1")
    assert re.sub(r"\x1b\[[01]?m", "", shown) == '{\r\n  "a": 1\r\n}\r\n'  # bold is no colour


@needs_a_terminal
@pytest.mark.parametrize("rich", [pytest.param(True, marks=pytest.mark.needs("rich")), False])
def test_a_result_cannot_move_the_cursor(fake: str, without_rich: dict[str, str], rich: bool) -> None:
    hostile = json.dumps("\x1b[2J\x9b2J\u202e\U000e0001é😀[red]", ensure_ascii=False)
    variables = {} if rich else without_rich
    shown = STYLES.sub("", on_a_terminal("echo", f"a={hostile}", fake, **variables))
    assert shown == '{\r\n  "a": "\\u001b[2J\\u009b2J\\u202e\\udb40\\udc01é😀[red]"\r\n}\r\n'


def test_a_stream_is_a_line_per_event(fake: str) -> None:
    done = call("count", "to=3", "--stream", fake)
    assert (done.returncode, done.stdout) == (0, '{"n":1}\n{"n":2}\n{"n":3}\n')


def test_the_servers_stderr_passes_through(fake: str) -> None:
    done = call("words", fake)
    assert (done.returncode, done.stdout, done.stderr) == (0, "null\n", "for people\n")


ERRORS: Mapping[str, tuple[object, int]] = {
    "invalid request": ({"code": -32600, "message": "Invalid Request", "data": {"reason": "duplicate-id"}}, 3),
    "invalid params": (
        {"code": -32602, "message": "", "data": {"param": "n", "expected": "integer", "received": "null"}},
        3,
    ),
    "unknown method": ({"code": -32601, "message": "Method not found"}, 4),
    "forbidden": ({"code": -32000, "message": "", "data": {"code": "FORBIDDEN", "retryable": False}}, 5),
    "domain": ({"code": -32000, "message": "", "data": {"code": "OUT_OF_STOCK", "retryable": False}}, 6),
    "server timeout": ({"code": -32000, "message": "", "data": {"code": "TIMEOUT", "retryable": True}}, 7),
    "overloaded": ({"code": -32000, "message": "", "data": {"code": "OVERLOADED", "retryable": True}}, 8),
    "cancelled": ({"code": -32800, "message": "Request cancelled"}, 8),
    "internal": ({"code": -32603, "message": "Internal error"}, 9),
    "unknown": ({"code": 7, "message": "Seven"}, 9),
}


@pytest.mark.parametrize("name", ERRORS)
def test_each_class_of_error_has_its_exit_status_and_one_line_on_stderr(fake: str, name: str) -> None:
    error, status = ERRORS[name]
    done = call("fail", json.dumps(error), fake)
    assert (done.returncode, done.stdout) == (status, "")
    assert done.stderr.count("\n") == 1


def test_an_errors_text_cannot_move_the_cursor(fake: str) -> None:
    done = call("fail", '{"code": 7, "message": "a\\u001b[2Jb\\nc"}', fake)
    assert "\x1b" not in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(("method", "status"), [("die", 10), ("garbage", 10)])
def test_a_server_that_fails_is_a_failed_connection(fake: str, method: str, status: int) -> None:
    assert call(method, fake).returncode == status


def test_a_server_that_cannot_be_run_is_a_failed_connection() -> None:
    assert call("m", "--server=/no/such/program").returncode == 10


def test_no_answer_in_time_is_a_timeout(fake: str) -> None:
    assert call("hang", "--timeout=0.2", fake).returncode == 7


def test_a_query_is_called_again_when_its_server_has_died(fake: str, tmp_path: Path) -> None:
    done = call("once", f"mark={tmp_path / 'mark'}", "--retry=1", fake)
    assert (done.returncode, done.stdout, done.stderr) == (0, "2\n", "")


@pytest.mark.parametrize(("flags", "status", "runs"), [([], 10, "x"), (["--idempotent"], 0, "xx")])
def test_what_may_have_had_an_effect_is_called_again_only_if_told_so(
    fake: str, tmp_path: Path, flags: list[str], status: int, runs: str
) -> None:
    done = call("once more", f"mark={tmp_path / 'mark'}", "--retry=3", *flags, fake)
    assert (done.returncode, (tmp_path / "mark").read_text()) == (status, runs)


def test_an_error_that_does_not_pass_is_told_in_the_end(fake: str) -> None:
    done = call("busy", "--retry=2", fake)
    assert (done.returncode, done.stdout) == (8, "")
    assert done.stderr.count("\n") == 1


def test_wrong_usage_starts_nothing() -> None:
    done = call("m", "nonsense")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_an_interrupt_ends_it_with_130_and_no_traceback(fake: str) -> None:
    with subprocess.Popen(command("hang", fake), stderr=subprocess.PIPE, text=True, env=environment()) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "hanging\n"
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
        assert process.wait(DEADLINE_SECONDS) == 130
    assert rest == ""


def test_a_reader_that_goes_away_ends_a_stream_quietly(fake: str) -> None:
    with subprocess.Popen(
        command("count", "to=20000", "--stream", fake),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b'{"n":1}\n'
        process.stdout.close()
        rest = process.stderr.read()
        assert process.wait(DEADLINE_SECONDS) == 1
    assert b"discreet" not in rest


def test_it_calls_a_real_daemon_over_a_folder(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("hello")
    done = call("fs/read", "path=note.txt", f"--root={tmp_path}")
    assert (done.returncode, '"content":"hello"' in done.stdout) == (0, True)
    missing = call("fs/read", "path=gone.txt", f"--root={tmp_path}")
    assert missing.returncode == 6
    assert "FILE_NOT_FOUND" in missing.stderr


@pytest.mark.parametrize("framing", ["content-length", "newline"])
def test_it_calls_a_real_daemon_with_an_app_in_either_framing(tmp_path: Path, framing: str) -> None:
    (tmp_path / "desk.py").write_text(
        "from discreet import Service\n"
        "desk = Service('desk')\n"
        "@desk.query()\n"
        "def add(a: int, b: int) -> int:\n"
        "    '''Add two numbers.'''\n"
        "    return a + b\n"
    )
    done = call("desk/add", "a=2", "b=3", "--app=./desk.py:desk", f"--framing={framing}", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "5\n")
    wrong = call("desk/add", "a=2", "--app=./desk.py:desk", f"--framing={framing}", cwd=tmp_path)
    assert wrong.returncode == 3
    assert "b: expected integer, received missing" in wrong.stderr


LABELS = """
from collections.abc import AsyncIterator
from discreet import Service

labels = Service("labels")

@labels.query()
def tag(text: str, times: int) -> str:
    return text * times

@labels.subscription()
async def tags(text: str) -> AsyncIterator[str]:
    yield text
"""


def test_a_number_is_a_text_where_the_operation_takes_a_text(tmp_path: Path) -> None:
    (tmp_path / "labels.py").write_text(LABELS)
    done = call("labels/tag", "text=0.50", "times=2", "--app=./labels.py:labels", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, '"0.500.50"\n', "")
    wrong = call("labels/tag", "text=0.50", "times=x", "--app=./labels.py:labels", cwd=tmp_path)
    assert (wrong.returncode, wrong.stderr.count("\n")) == (3, 1)
    stream = call("labels/tags", "text=5", "--stream", "--app=./labels.py:labels", cwd=tmp_path)
    assert (stream.returncode, stream.stdout) == (0, '"5"\n')


CLOCK = """
from collections.abc import AsyncIterator
from discreet import OperationError, Service

clock = Service("clock")

class Stopped(OperationError, code="STOPPED"):
    "The clock has stopped."

@clock.subscription(errors=[Stopped])
async def ticks(to: int, stops: bool = False) -> AsyncIterator[dict[str, int]]:
    for number in range(1, to + 1):
        yield {"tick": number}
    if stops:
        raise Stopped()
"""


@pytest.mark.parametrize("framing", ["content-length", "newline"])
def test_a_subscription_of_a_real_daemon_is_a_line_per_event(tmp_path: Path, framing: str) -> None:
    (tmp_path / "clock.py").write_text(CLOCK)
    daemon = ("--app=./clock.py:clock", f"--framing={framing}", "--stream")
    done = call("clock/ticks", "to=100", *daemon, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "".join(f'{{"tick":{number}}}\n' for number in range(1, 101)))
    stopped = call("clock/ticks", "to=2", "stops=true", *daemon, cwd=tmp_path)
    assert (stopped.returncode, stopped.stdout) == (6, '{"tick":1}\n{"tick":2}\n')
    assert "STOPPED" in stopped.stderr
    wrong = call("clock/ticks", "to=many", *daemon, cwd=tmp_path)
    assert (wrong.returncode, wrong.stdout) == (3, "")
