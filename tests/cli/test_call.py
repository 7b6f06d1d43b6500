"""`discreet call`: results on stdout, an exit status per class of error, and no result lost without a word."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from discreet.client.dialects import DIALECTS
from support.form_server import taking_forms
from support.hostile import hostile
from support.in_process import in_process
from support.programs import DISCREET, environment, finished, install_commands, on_terminal
from support.waits import DEADLINE_SECONDS

PAGE: Final = (Path(__file__).parents[2] / "docs" / "call.md").read_text(encoding="utf-8")
TOKEN: Final = "s3cr3t-of-ann"

SERVER: Final = r"""
while request := read():
    params = request.get("params")
    if request["method"] == "services/subscribe" and params["operationId"] == "count":
        request["method"], params = "count", params["input"]
    match request["method"]:
        case "echo":
            text = json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": params}, ensure_ascii=False)
            write(frame(text.encode()))
        case "fail":
            write({"jsonrpc": "2.0", "id": request["id"], "error": params})
        case "services/subscribe":
            write({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32601, "message": "Method not found"}})
        case "count":
            for seq in range(1, params["to"] + 1):
                event = {"id": request["id"], "seq": seq, "value": {"n": seq}}
                write({"jsonrpc": "2.0", "method": "stream/event", "params": event})
            reply(request, {"completed": True, "events": params["to"]})
        case "services/list":
            reply(request, [{"name": "once", "kind": "query"}])
        case "once" | "once more":
            with open(params["mark"], "a+") as mark:
                mark.write("x")
                mark.seek(0)
                runs = len(mark.read())
            if runs == 1:
                os._exit(3)
            reply(request, runs)
        case "garbage":
            print("Segmentation fault", flush=True)
        case "bytes":
            write(frame(b'{"jsonrpc":"2.0","id":%d,"result":"\xff"}' % request["id"]))
        case "lost":
            write({"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "Parse error"}})
        case "hang":
            print("hanging", file=sys.stderr, flush=True)
        case "words":
            print("for people", file=sys.stderr, flush=True)
            reply(request, None)
"""
FAKE: Final = f"--server={shlex.join(hostile(SERVER))}"

LINES: Final = r"""
import json, sys
ready = False
for line in sys.stdin:
    message = json.loads(line)
    match message["method"]:
        case "initialize" if sys.argv[1:] == ["mute"]:
            continue
        case "initialize":
            answer = {"result": {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {}}}
        case "notifications/initialized":
            ready = True
        case "tools/list" if not ready:
            answer = {"error": {"code": -32602, "message": "not initialized"}}
        case "tools/list":
            answer = {"result": {"tools": []}}
        case "tools/call":
            answer = {"result": {"content": [], "isError": message["params"]["bad"]}}
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
"""

APP: Final = """
from collections.abc import AsyncIterator
from pathlib import Path
from discreet import Context, OperationError, Service

desk = Service("desk")

@desk.query(scopes=["desk:reader"])
async def who(ctx: Context, name: str = "") -> list[str]:
    '''Tell who asks.'''
    assert ctx.identity is not None
    return [ctx.identity.subject, *sorted(f"{name}={value}" for name, value in ctx.service_params.items())]

@desk.subscription(scopes=["desk:reader"])
async def whoever(ctx: Context) -> AsyncIterator[str]:
    assert ctx.identity is not None
    yield ctx.identity.subject

@desk.query()
def add(a: int, b: int) -> int:
    '''Add two numbers.'''
    return a + b

@desk.query()
def tag(text: str, times: int) -> str:
    return text * times

@desk.mutation()
def take() -> int:
    Path("taken").touch()
    return 7

class Stopped(OperationError, code="STOPPED"):
    "The clock has stopped."

@desk.subscription(errors=[Stopped])
async def ticks(to: int, stops: bool = False, mark: str = "") -> AsyncIterator[dict[str, object]]:
    for number in range(1, to + 1):
        yield {"tick": number, "mark": mark}
    if stops:
        raise Stopped()
"""
DESK: Final = "--app=./desk.py:desk"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in {"desk.py": APP, "lines.py": LINES, "token": f"{TOKEN}\n"}.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def lines(*words: str) -> str:
    return f"--server={shlex.join([sys.executable, '-I', '-S', 'lines.py', *words])}"


def command(*words: str) -> list[str]:
    return [*DISCREET, "call", *words]


def call(*words: str, cwd: Path | None = None, stdin: str = "", **more: str) -> subprocess.CompletedProcess[str]:
    return in_process("call", *words, folder=cwd, stdin=stdin, **more)


# -- what is printed --------------------------------------------------------------------------------------------------


def test_a_result_is_one_line_of_json_when_piped() -> None:
    done = finished(command("echo", "a=1", "b=two", 'c={"x": [1,  2]}', FAKE))
    assert (done.returncode, done.stdout, done.stderr) == (0, '{"a":1,"b":"two","c":{"x":[1,2]}}\n', "")


def on_a_terminal(*words: str, **variables: str) -> str:
    """What the call writes to a terminal."""
    plain = {"TERM": "xterm-256color", "NO_COLOR": ""}
    done, shown = on_terminal(command(*words), "stdout", **{**plain, **variables})
    assert done.returncode == 0
    return shown


@pytest.fixture
def without_rich(tmp_path: Path) -> dict[str, str]:
    """Variables with which rich can't be imported."""
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "rich.py").write_text("raise ImportError")
    return {"PYTHONPATH": environment(tmp_path / "hidden")["PYTHONPATH"]}


STYLES = re.compile(r"\x1b\[[0-9;]*m")

needs_a_terminal = pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")


@needs_a_terminal
@pytest.mark.needs("rich")
def test_with_rich_a_result_is_coloured_on_a_terminal_and_says_the_same() -> None:
    shown = on_a_terminal("echo", "a=9007199254740993", f"b={'x' * 200}", FAKE)
    assert "\x1b[" in shown
    assert STYLES.sub("", shown) == '{\r\n  "a": 9007199254740993,\r\n  "b": "' + "x" * 200 + '"\r\n}\r\n'


@needs_a_terminal
@pytest.mark.needs("rich")
def test_no_color_is_honoured() -> None:
    shown = on_a_terminal("echo", "a=1", FAKE, NO_COLOR="1")
    assert re.sub(r"\x1b\[[01]?m", "", shown) == '{\r\n  "a": 1\r\n}\r\n'  # bold is no colour


@needs_a_terminal
@pytest.mark.parametrize("rich", [pytest.param(True, marks=pytest.mark.needs("rich")), False])
def test_a_result_is_indented_on_a_terminal_and_cannot_move_the_cursor(
    without_rich: dict[str, str], rich: bool
) -> None:
    odd = json.dumps("\x1b[2J\x9b2J\u202e\U000e0001é😀[red]", ensure_ascii=False)
    shown = STYLES.sub("", on_a_terminal("echo", f"a={odd}", FAKE, **({} if rich else without_rich)))
    assert shown == '{\r\n  "a": "\\u001b[2J\\u009b2J\\u202e\\udb40\\udc01é😀[red]"\r\n}\r\n'


def test_the_servers_stderr_passes_through() -> None:
    done = call("words", FAKE)
    assert (done.returncode, done.stdout, done.stderr) == (0, "null\n", "for people\n")


needs_jq = pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")


def sh(folder: Path, script: str) -> str:
    path = f"{install_commands(folder / 'bin')}{os.pathsep}{os.environ['PATH']}"
    done = finished(["sh", "-c", script], folder, PATH=path)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@needs_jq
def test_the_loop_of_the_page_follows_all_pages(folder: Path) -> None:
    [script] = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    names = ["5", "a b.txt", "c", "true", "zz"]
    (folder / "docs").mkdir()
    for name in names:
        (folder / "docs" / name).touch()
    assert sh(folder, script).splitlines() == names


@needs_jq
def test_a_result_is_one_document_and_a_stream_a_line_per_event_for_jq(folder: Path) -> None:
    assert sh(folder, "discreet call fs/list limit=1 | jq -c '.entries | length'") == "1\n"
    assert sh(folder, f"discreet call desk/ticks to=3 --stream {DESK} | jq .tick") == "1\n2\n3\n"


# -- servers that fail ------------------------------------------------------------------------------------------------


def test_an_error_is_one_line_with_number_and_data_and_cannot_move_the_cursor() -> None:
    done = call("fail", '{"code": 12345, "message": "a\\u001b[2Jb\\nc", "data": {"a": [1]}}', FAKE)
    line = 'discreet: fail: INTERNAL: a\\x1b[2Jb\\nc (12345, {"a": [1]})\n'
    assert (done.returncode, done.stdout, done.stderr) == (9, "", line)


@pytest.mark.parametrize(
    ("method", "server"),
    [("once more", FAKE), ("garbage", FAKE), ("bytes", FAKE), ("m", "--server=/no/such/program")],
    ids=["dies", "writes no frame", "writes no UTF-8", "cannot be run"],
)
def test_a_server_that_fails_is_a_failed_connection(method: str, server: str, tmp_path: Path) -> None:
    done = call(method, f"mark={tmp_path / 'mark'}", server)
    assert (done.returncode, done.stdout) == (10, "")


@pytest.mark.parametrize("words", [["hang", FAKE], ["m", "--dialect=mcp", lines("mute")]], ids=["call", "handshake"])
def test_no_answer_in_time_is_a_timeout(words: list[str], folder: Path) -> None:
    done = call(*words, "--timeout=0.2", cwd=folder)
    assert (done.returncode, done.stdout) == (7, "")
    assert done.stderr.count("discreet: ") == 1


def test_an_error_that_names_no_request_is_shown() -> None:
    done = call("lost", "--timeout=0.5", FAKE)
    first, second = done.stderr.splitlines()
    assert (done.returncode, second) == (7, "discreet: no answer to lost within 0.5 s")
    assert "PARSE_ERROR" in first


@pytest.mark.parametrize(
    ("method", "flags", "status", "runs"),
    [("once", [], 0, "xx"), ("once more", [], 10, "x"), ("once more", ["--idempotent"], 0, "xx")],
)
def test_what_may_have_had_an_effect_is_called_again_only_if_told_so(
    tmp_path: Path, method: str, flags: list[str], status: int, runs: str
) -> None:
    done = call(method, f"mark={tmp_path / 'mark'}", "--retry=3", *flags, FAKE)
    assert (done.returncode, done.stdout) == (status, "2\n" if status == 0 else "")
    assert (tmp_path / "mark").read_text() == runs


def test_an_error_that_does_not_pass_is_told_in_the_end() -> None:
    data = {"code": "OVERLOADED", "retryable": True, "details": {"retryAfterMs": 1}}
    busy = json.dumps({"code": -32000, "message": "Server overloaded", "data": data})
    done = call("fail", busy, "--retry=2", FAKE)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (8, "", 1)


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_an_interrupt_ends_it_with_130_and_no_traceback() -> None:
    with subprocess.Popen(command("hang", FAKE), stderr=subprocess.PIPE, text=True, env=environment()) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "hanging\n"
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
        assert process.wait(DEADLINE_SECONDS) == 130
    assert rest == ""


def test_a_reader_that_goes_away_ends_a_stream_quietly() -> None:
    pipe = subprocess.PIPE
    words = command("count", "to=20000", "--stream", FAKE)
    with subprocess.Popen(words, stdout=pipe, stderr=pipe, env=environment()) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b'{"n":1}\n'
        process.stdout.close()
        rest = process.stderr.read()
        assert process.wait(DEADLINE_SECONDS) == 1
    assert b"discreet" not in rest


@pytest.mark.skipif(sys.platform == "win32", reason="a POSIX shell")
def test_without_a_stdout_nothing_is_called(folder: Path) -> None:
    done = finished(["sh", "-c", 'exec "$0" "$@" >&-', *command("desk/take", DESK)], folder)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert not (folder / "taken").exists()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_full_stderr_changes_no_status() -> None:
    shell = ["sh", "-c", 'exec "$0" "$@" 2>/dev/full']
    assert finished([*shell, *command("fail", '{"code": 7, "message": "no"}', FAKE)]).returncode == 9


# -- daemons of our own -----------------------------------------------------------------------------------------------


def test_without_an_app_it_calls_the_file_service(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("hello")
    done = call("fs/read", "path=note.txt", f"--root={tmp_path}")
    assert (done.returncode, '"content":"hello"' in done.stdout) == (0, True)
    missing = call("fs/read", "path=gone.txt", f"--root={tmp_path}")
    assert (missing.returncode, "FILE_NOT_FOUND" in missing.stderr) == (6, True)


@pytest.mark.parametrize("framing", ["content-length", "newline"])
def test_it_calls_and_subscribes_in_either_framing(folder: Path, framing: str) -> None:
    done = call("desk/add", "a=2", "b=3", DESK, f"--framing={framing}", cwd=folder)
    assert (done.returncode, done.stdout) == (0, "5\n")
    done = call("desk/ticks", "to=100", DESK, f"--framing={framing}", "--stream", cwd=folder)
    events = "".join(f'{{"tick":{number},"mark":""}}\n' for number in range(1, 101))
    assert (done.returncode, done.stdout) == (0, events)


def test_wrong_input_is_told_with_its_place_and_a_stream_ends_with_its_error(folder: Path) -> None:
    wrong = call("desk/add", "a=2", DESK, cwd=folder)
    assert wrong.returncode == 3
    assert "b: expected integer, received missing" in wrong.stderr
    stopped = call("desk/ticks", "to=2", "stops=true", DESK, "--stream", cwd=folder)
    assert (stopped.returncode, stopped.stdout.count("\n"), "STOPPED" in stopped.stderr) == (6, 2, True)
    wrong = call("desk/ticks", "to=many", DESK, "--stream", cwd=folder)
    assert (wrong.returncode, wrong.stdout) == (3, "")


def test_a_number_is_a_text_where_the_operation_takes_a_text(folder: Path) -> None:
    done = call("desk/tag", "text=0.50", "times=2", DESK, cwd=folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, '"0.500.50"\n', "")
    wrong = call("desk/tag", "text=0.50", "times=x", DESK, cwd=folder)
    assert (wrong.returncode, wrong.stderr.count("\n")) == (3, 1)
    stream = call("desk/ticks", "mark=5", "to=1", "--stream", DESK, cwd=folder)
    assert (stream.returncode, stream.stdout) == (0, '{"tick":1,"mark":"5"}\n')


def test_what_is_no_subscription_is_not_run_where_the_daemon_knows(folder: Path) -> None:
    done = call("desk/take", "--stream", DESK, cwd=folder)
    assert (done.returncode, done.stdout, "--stream" in done.stderr) == (3, "", True)
    assert not (folder / "taken").exists()


def test_the_result_of_what_is_no_subscription_and_has_run_is_printed() -> None:
    done = call("echo", "[7]", "--stream", FAKE)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (3, "[7]\n", 1)
    assert "has run" in done.stderr


def test_a_subscription_by_its_plain_name_says_what_it_needs(folder: Path) -> None:
    done = call("desk/ticks", "to=1", DESK, cwd=folder)
    assert (done.stdout, done.returncode, "--stream" in done.stderr) == ("", 3, True)


@pytest.mark.parametrize("flag", ["--app=nope:desk", "--app=./desk.py:nope", "--root=/no/such/folder"])
def test_what_the_daemon_calls_wrong_usage_is_that_and_said_once(folder: Path, flag: str) -> None:
    done = call("version", flag, cwd=folder)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)


# -- who calls --------------------------------------------------------------------------------------------------------

GUARDED: Final = {"DISCREET_TOKEN": f"ann:{hashlib.sha256(TOKEN.encode()).hexdigest()}:desk:reader"}
"""The environment of a daemon that wants a token."""

PATIENT: Final = """
import sys
from discreet.cli import completer
from discreet.cli.main import main
completer.DAEMON_SECONDS = 20.0
sys.exit(main(sys.argv[1:]))
"""
"""The program with time enough to complete a line on a busy machine."""


@pytest.mark.parametrize("flag", ["--token-env=MINE", "--token-file=token", "--token-file=-"])
def test_a_token_is_sent_from_where_it_is_kept(folder: Path, flag: str) -> None:
    done = call("desk/who", DESK, flag, cwd=folder, stdin=f"{TOKEN}\n", MINE=TOKEN, **GUARDED)
    assert (done.stdout, done.returncode) == (f'["ann","authorization=Bearer {TOKEN}"]\n', 0), done.stderr
    assert TOKEN not in done.stderr


def test_a_token_is_got_for_an_oauth_client(folder: Path) -> None:
    pytest.importorskip("h11")
    with taking_forms(lambda _: {"access_token": TOKEN, "token_type": "Bearer"}) as issuer:
        text = f'[oauth]\ntoken-url = "{issuer.url}"\nclient-id = "c"\nclient-secret = "s3cret-of-c"\n'
        done = call("desk/who", DESK, "--token-env=MINE", cwd=folder, MINE=text, **GUARDED)
        assert (done.stdout, done.returncode) == (f'["ann","authorization=Bearer {TOKEN}"]\n', 0), done.stderr
        issuer.status, issuer.answer = 401, lambda _: {"error": "invalid_client"}
        done = call("desk/who", DESK, "--token-env=MINE", cwd=folder, MINE=text, **GUARDED)
        assert (done.stdout, done.returncode, done.stderr.count("\n")) == ("", 2, 1)
        assert "invalid_client" in done.stderr and "s3cret" not in done.stderr


def test_a_stream_is_asked_for_with_the_token_too(folder: Path) -> None:
    done = call("desk/whoever", "--stream", DESK, "--token-file=token", cwd=folder, **GUARDED)
    assert (done.stdout, done.returncode) == ('"ann"\n', 0)


def test_a_client_is_generated_of_what_the_token_may_see(folder: Path) -> None:
    server = f"--server={shlex.join([*DISCREET, 'serve', './desk.py:desk'])}"
    for flags, sees in (([], False), (["--token-file=token"], True)):
        done = in_process("generate", "python", server, *flags, folder=folder, **GUARDED)
        assert (done.returncode, "def who(" in done.stdout) == (0, sees)


def test_what_the_token_may_see_is_completed(folder: Path) -> None:
    known, guarded = "desk/add\ndesk/tag\ndesk/take\ndesk/ticks\n", "desk/who\ndesk/whoever\n"
    for flags, offered in (("", known), ("--token-file token ", known + guarded)):
        line = f"discreet call {DESK} {flags}"
        done = finished([sys.executable, "-P", "-c", PATIENT, "--complete", line], folder, **GUARDED)
        assert (done.stdout, done.stderr) == (offered, "")
    asked = in_process("--complete", "discreet call --token-file - ", folder=folder, stdin=TOKEN)
    assert (asked.stdout, asked.stderr) == ("", "")


def test_other_service_params_go_along(folder: Path) -> None:
    params = ("--service-param=TraceParent=00-a=b", "--service-param=a2a-version=1.0")
    done = call("desk/who", DESK, *params, cwd=folder)
    assert (done.stdout, done.returncode) == ('["parent","a2a-version=1.0","traceparent=00-a=b"]\n', 0)


def test_scopes_and_writing_are_the_daemons_to_allow(folder: Path) -> None:
    assert call("desk/who", DESK, "--scope=desk:other", cwd=folder).returncode == 5
    assert call("desk/who", DESK, "--scope=desk:other", "--scope=desk:reader", cwd=folder).returncode == 0
    write = ("fs/write", "path=new.txt", "content=hello")
    assert call(*write, cwd=folder).returncode == 4
    assert call(*write, "--allow-write", cwd=folder).returncode == 0
    assert (folder / "new.txt").read_text() == "hello"


# -- other protocols --------------------------------------------------------------------------------------------------


def test_a_server_that_waits_for_a_handshake_gets_it(folder: Path) -> None:
    done = call("tools/list", "--dialect=mcp", lines(), cwd=folder)
    assert (done.stdout, done.stderr, done.returncode) == ('{"tools":[]}\n', "", 0)
    refused = call("tools/list", "--framing=newline", lines(), cwd=folder)
    assert (refused.stdout, refused.returncode) == ("", 3)
    hint = "; a method of another protocol: --dialect mcp"
    assert refused.stderr == f"discreet: tools/list: INVALID_INPUT: not initialized{hint}\n"


@pytest.mark.parametrize(("bad", "dialect", "status"), [("true", "mcp", 6), ("false", "mcp", 0), ("true", "plain", 0)])
def test_a_tool_that_failed_is_a_failed_operation(folder: Path, bad: str, dialect: str, status: int) -> None:
    done = call("tools/call", f"bad={bad}", f"--dialect={dialect}", "--framing=newline", lines(), cwd=folder)
    assert (done.returncode, done.stdout) == (status, f'{{"content":[],"isError":{bad}}}\n')


CALLS = {"lsp": ["desk/who"], "mcp": ["tools/call", "name=desk_who"], "acp": ["session/new", "cwd=/", "mcpServers=[]"]}


@pytest.mark.parametrize("name", DIALECTS)
def test_the_daemon_itself_speaks_the_dialect_that_is_named(name: str, folder: Path) -> None:
    done = call(*CALLS.get(name, ["desk/who"]), DESK, f"--dialect={name}", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert ("sessionId" if name == "acp" else "parent") in done.stdout


def test_without_a_dialect_an_operation_is_called_by_its_name_whatever_the_app_declares(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(
        'from discreet import Service\napp = Service("tools", dialect="mcp")\n'
        'app.query(name="one", inline=True)(lambda: 1)\n'
    )
    done = call("tools/one", "--app=./tools.py:app", cwd=tmp_path)
    assert (done.stdout, done.returncode) == ("1\n", 0), done.stderr
    done = call("tools/one", "--app=./tools.py:app", "--dialect=mcp", cwd=tmp_path)
    assert (done.returncode, "tools/call name=" in done.stderr) == (4, True)
