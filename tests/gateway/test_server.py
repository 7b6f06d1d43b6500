"""The server around the gateway, as a process: what it refuses at its start, how it listens, and how it ends."""

from __future__ import annotations

import gzip
import json
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("httptools")

import signal
import socket
import stat
import subprocess

from discreet.framing.encoder import encode_frame
from support.http_process import AGENT, HttpDaemon, http_daemon, message, post, rpc, sent
from support.issuer import public, rsa_key, token, written
from support.programs import DISCREET, environment, finished, has_ended
from support.vault import SECRET, digest
from support.waits import wait_until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and unix sockets")


HTTP = ("--http", "127.0.0.1:0", "--isolated", "--log-level", "debug")
ALONE = (*HTTP, "--no-stdio")
WITHOUT = "import sys; sys.modules['{}'] = None; from discreet.__main__ import main; raise SystemExit(main())"


def refused(folder: Path, *flags: str, command: tuple[str, ...] = DISCREET) -> str:
    """The one line with which a start is refused."""
    (folder / "worker.py").write_text(AGENT)
    result = finished([*command, "serve", "./worker.py:agent", "--isolated", *flags], folder)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith("discreet: ")
    return result.stderr


@pytest.mark.parametrize(
    ("flags", "hint"),
    [
        (["--http", "0.0.0.0:0"], "--http-open"),
        (["--http", "[::]:0"], "--http-open"),
        (["--http", "192.0.2.7:0", "--http-open"], "--http 192.0.2.7:0"),
        (["--http", "nowhere.invalid:0", "--http-open"], "--http nowhere.invalid:0"),
        (["--http", "127.0.0.1:0", "--backend", "trio"], "--backend asyncio"),
        (["--grpc", "0.0.0.0:0"], "--http-open"),
        (["--no-stdio"], "--http"),
        (["--http", "127.0.0.1:0", "--http-cert", "nowhere.pem"], "--http-cert: expected an existing file"),
        (["--http", "127.0.0.1:0", "--http-key", "worker.py"], "--http-cert"),
        (["--http", "unix:worker.py"], "no socket"),
        (["--http", "unix:."], "no socket"),
        (["--http", "unix:nowhere/socket"], "unix:"),
        (["--http", "unix:" + "x" * 200], "unix:"),
        (["--jwt-issuer", "x"], "--jwt-audience and --jwt-jwks"),
    ],
)
def test_what_can_not_be_served_is_one_line(tmp_path: Path, flags: list[str], hint: str) -> None:
    assert hint in refused(tmp_path, *flags)
    assert (tmp_path / "worker.py").read_text() == AGENT


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ("http='127.0.0.1:0', http_key='worker.py'", "http_key needs http_cert beside it"),
        ("http='0.0.0.0:0'", "http 0.0.0.0:0: others could call it; add tokens or identity, or http_open to "),
    ],
)
def test_what_a_program_can_not_serve_is_told_in_its_own_words(tmp_path: Path, arguments: str, line: str) -> None:
    program = f"{AGENT}\nimport discreet\ndiscreet.serve(agent, isolated=True, {arguments})\n"
    (tmp_path / "worker.py").write_text(program)
    done = finished([sys.executable, "worker.py"], tmp_path)
    assert done.stderr.startswith(f"discreet: {line}")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)


@pytest.mark.parametrize(
    ("missing", "extra"), [("httptools", "http"), ("jwt", "jwt"), ("prometheus_client", "metrics")]
)
def test_an_extra_that_is_missing_is_named(tmp_path: Path, missing: str, extra: str) -> None:
    command = (sys.executable, "-P", "-c", WITHOUT.format(missing))
    flags = ["--http", "127.0.0.1:0", *(["--http-metrics"] if extra == "metrics" else [])]
    if extra == "jwt":
        keys = written(tmp_path / "keys.json", public(rsa_key()))
        flags = ["--jwt-issuer", "x", "--jwt-audience", "y", "--jwt-jwks", keys]
    assert f"discreet[{extra}]" in refused(tmp_path, *flags, command=command)


def test_an_address_in_use_is_one_line(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert "in use" in refused(tmp_path, "--http", f"127.0.0.1:{taken.getsockname()[1]}")


@pytest.mark.parametrize("flags", [["--http-open"], ["--token", f"ada:{digest(SECRET)}"]])
def test_beyond_this_machine_it_takes_tokens_or_leave(tmp_path: Path, flags: list[str]) -> None:
    with http_daemon(
        tmp_path, "--http", "0.0.0.0:0", "--isolated", "--no-stdio", "--log-level", "info", *flags
    ) as daemon:
        headers = {"host": "anything.example"} if "--http-open" in flags else {"authorization": f"Bearer {SECRET}"}
        with daemon.listening().connected() as client:
            text = message(**{name: value for name, value in headers.items() if name != "host"})
            client.send(text.replace(b"localhost", headers.get("host", "localhost").encode()))
            assert client.response().status == 200


@pytest.mark.skipif(sys.platform != "linux", reason="the limit of a shell")
def test_connections_leave_descriptors_to_requests_and_are_accepted_again_when_others_end(tmp_path: Path) -> None:
    command = ("sh", "-c", 'ulimit -n 48; exec "$@"', "sh", *DISCREET)
    with http_daemon(tmp_path, *ALONE, command=command) as daemon, ExitStack() as clients:
        daemon.listening()
        waiting = [clients.enter_context(daemon.connected()) for _ in range(48)]
        daemon.wait_for("http.accept_failed")
        waiting[0].send(message("its modules load now"))
        assert waiting[0].response().status == 200
        for client in waiting:
            client.close()
        assert daemon.call().json["result"]["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
        assert daemon.end() == 0
        assert [line for line in daemon.lines if "level=error" in line] == [daemon.wait_for("http.accept_failed")]


# -- handlers ------------------------------------------------------------------------------------------------------


SHOP = """
import anyio
from discreet import Service
agent = Service("shop")

@agent.query
async def now(text: str) -> str:
    return text

@agent.query
async def waits(text: str) -> str:
    await anyio.sleep(0.01)
    return text

@agent.query
def thread(text: str) -> str:
    return text

@agent.query(inline=True)
def inline(text: str) -> str:
    return text

@agent.query
async def large(text: str) -> str:
    return text * 200_000

@agent.query
async def fails(text: str) -> str:
    raise ValueError

@agent.subscription
async def ticks(text: str):
    yield text
    await anyio.sleep(0.01)
    yield text
"""
COMPLETED = b'event: completed\ndata: {"completed":true,"events":2}\n\n'


@pytest.mark.parametrize("backend", ["asyncio", "uvloop"])
def test_handlers_of_each_kind_are_answered_on_one_connection(tmp_path: Path, backend: str) -> None:
    pytest.importorskip(backend)
    with http_daemon(tmp_path, *ALONE, "--http-operations", "--backend", backend, source=SHOP) as daemon:
        with daemon.listening().connected() as client:
            for name in ("now", "waits", "thread", "inline", "large", "fails", "ticks", "nowhere", "now"):
                for more in (b"", b"accept-encoding: gzip\r\n"):
                    head = b"POST /operations/shop/%b HTTP/1.1\r\nhost: localhost\r\n" % name.encode()
                    client.send(head + b"content-type: application/json\r\ncontent-length: 13\r\n" + more + b"\r\n")
                    client.send(b'{"text":"ab"}')
                    response = client.response()
                    zipped = response.headers.get("content-encoding") == "gzip"
                    body = gzip.decompress(response.body) if zipped else response.body
                    match name:
                        case "fails" | "nowhere":
                            assert response.status == (500 if name == "fails" else 404)
                        case "ticks":
                            assert body == b'data: "ab"\n\n' * 2 + COMPLETED
                        case _:
                            assert (response.status, zipped) == (200, bool(more) and name == "large")
                            assert body == b'"%b"' % (b"ab" * (200_000 if name == "large" else 1))
        assert daemon.end() == 0
        assert [line for line in daemon.lines if "Task" in line or "daemon.fault" in line] == []


# -- unix sockets --------------------------------------------------------------------------------------------------


ON_SOCKET = ("--http", "unix:socket", "--isolated", "--log-level", "info")


@contextmanager
def on_socket(folder: Path) -> Iterator[HttpDaemon]:
    with http_daemon(folder, *ON_SOCKET, "--no-stdio") as daemon:
        assert daemon.listening().url == f"unix:{folder / 'socket'}"
        yield daemon


def test_a_unix_socket_is_the_user_s_own_and_gone_at_the_end(tmp_path: Path) -> None:
    with on_socket(tmp_path) as daemon:
        assert stat.S_IMODE((tmp_path / "socket").stat().st_mode) == 0o600
        assert daemon.call("who").json["result"]["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
        assert "another process listens" in refused(tmp_path, "--http", "unix:socket")
        assert daemon.call().status == 200
        (tmp_path / "socket").chmod(0o660)  # as for a proxy
        assert daemon.end() == 0
    assert not (tmp_path / "socket").exists()


def test_the_socket_of_a_killed_daemon_is_taken_over(tmp_path: Path) -> None:
    with on_socket(tmp_path) as daemon:
        daemon.process.kill()
        daemon.wait()
    assert (tmp_path / "socket").exists()
    with on_socket(tmp_path) as daemon:
        assert daemon.call().status == 200
        assert daemon.end() == 0


def test_a_socket_that_another_process_has_put_there_since_stays(tmp_path: Path) -> None:
    with on_socket(tmp_path) as daemon, socket.socket(socket.AF_UNIX) as another:
        (tmp_path / "socket").unlink()
        another.bind(str(tmp_path / "socket"))
        assert daemon.end() == 0
        assert (tmp_path / "socket").exists()


def test_a_daemon_that_ends_before_it_serves_leaves_no_socket(tmp_path: Path) -> None:
    with http_daemon(tmp_path, *ON_SOCKET) as daemon:  # its input has ended
        assert daemon.wait() == 0
    assert "--no-stdio" in daemon.log
    assert not (tmp_path / "socket").exists()


# -- the end -------------------------------------------------------------------------------------------------------


def test_at_the_end_what_runs_finishes_and_streams_are_told(tmp_path: Path) -> None:
    source = AGENT.replace(
        'case "wait":', 'case "soon":\n                await anyio.sleep(0.3)\n            case "wait":'
    )
    with http_daemon(tmp_path, *ALONE, "--drain-timeout", "1.5", source=source) as daemon:
        daemon.listening()
        with daemon.connected() as soon, daemon.connected() as stream, daemon.connected() as idle:
            stream.send(message("wait", "SendStreamingMessage"))
            assert stream.head().status == 200
            assert b"TASK_STATE" in stream.chunk()
            soon.send(message("soon"))
            idle.send(post(rpc("ListTasks", {})))
            assert idle.response().status == 200
            daemon.process.send_signal(signal.SIGTERM)
            daemon.wait_for("daemon.draining")
            assert soon.response().status == 200
            rest = stream.rest()
            assert b"UNAVAILABLE" in rest or b"-32000" in rest
            assert rest.endswith(b"0\r\n\r\n")
            assert idle.rest() == b""
        assert daemon.wait() == 0
        assert "Traceback" not in daemon.log


@pytest.mark.parametrize("accepted", [True, False])
def test_who_has_connected_before_the_end_gets_one_answer(tmp_path: Path, *, accepted: bool) -> None:
    begun = tmp_path / "begun"
    blocks = f'case "block":\n                open({str(begun)!r}, "w").close()\n                time.sleep(1)\n            case "wait":'
    source = f"import time\n{AGENT}".replace('case "wait":', blocks)
    with http_daemon(tmp_path, *ALONE, "--drain-timeout", "5", source=source) as daemon:
        daemon.listening()
        with ExitStack() as clients:
            working = clients.enter_context(daemon.connected())
            if accepted:
                waiting = [clients.enter_context(daemon.connected()) for _ in range(3)]
            working.send(message("block"))
            wait_until(begun.exists)
            if not accepted:  # the loop is busy: the system alone knows of them
                waiting = [clients.enter_context(daemon.connected()) for _ in range(3)]
            daemon.process.send_signal(signal.SIGTERM)
            for client in waiting:
                client.send(post(rpc("ListTasks", {})))
                assert client.response().status == 200
            assert working.response().status == 200
        assert daemon.wait() == 0


def test_a_connection_goes_on_behind_a_large_request_that_came_in_one_piece(tmp_path: Path) -> None:
    with http_daemon(tmp_path, *ALONE) as daemon:
        daemon.listening()
        with daemon.connected() as client:
            for size in (70_000, 1, 150_000, 70_000, 1):
                client.send(post(rpc("GetTask", {"id": "x" * size})))
                assert client.response().status in (200, 404)


def test_a_client_that_reads_nothing_is_cut_at_the_end_and_that_is_no_error(tmp_path: Path) -> None:
    for _ in range(5):  # on a busy machine the process may be gone before it says so
        with http_daemon(tmp_path, *ALONE, "--drain-timeout", "0.1") as daemon:
            daemon.listening()
            with daemon.connected() as client:
                client.send(message("big 30000000"))  # more than the sockets hold
                assert client.head().status == 200
                assert daemon.end() == 0
        assert "level=error" not in daemon.log
        if "http.client_cut" in daemon.log:
            return
    pytest.fail("it is never said")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_each_ending_signal_ends_a_server_of_the_network(tmp_path: Path, number: signal.Signals) -> None:
    with http_daemon(tmp_path, *ALONE) as daemon:
        assert daemon.listening().call().status == 200
        with daemon.connected():  # who sends nothing is not waited for
            assert daemon.end(number) == 0
        assert "daemon.window_closed" not in daemon.log


def test_without_stdio_it_outlives_who_started_it(tmp_path: Path) -> None:
    (tmp_path / "worker.py").write_text(AGENT)
    command = [*DISCREET, "serve", "./worker.py:agent", *ALONE, "--log-file", str(tmp_path / "log")]
    starter = (
        "import subprocess, sys; "
        "print(subprocess.Popen(sys.argv[1:], stdin=-3, stdout=-3, stderr=-3, start_new_session=True).pid)"
    )
    result = subprocess.run(
        [sys.executable, "-c", starter, *command], cwd=tmp_path, env=environment(), capture_output=True, check=True
    )
    pid = int(result.stdout)
    try:
        wait_until(lambda: (tmp_path / "log").exists() and "http.listening" in (tmp_path / "log").read_text())
        daemon = HttpDaemon.__new__(HttpDaemon)
        daemon.url = (tmp_path / "log").read_text().partition("url=")[2].split()[0].strip('"')
        assert daemon.call().status == 200
    finally:
        os.kill(pid, signal.SIGTERM)
    wait_until(lambda: has_ended(pid))
    assert "reason=signal" in (tmp_path / "log").read_text()


# -- beside stdio --------------------------------------------------------------------------------------------------


class Pipe:
    """The client that started the daemon."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def call(self, body: bytes) -> Any:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(encode_frame(body, "content-length"))
        self._process.stdin.flush()
        head = self._process.stdout.readline()
        assert head.startswith(b"Content-Length: ")
        assert self._process.stdout.readline() == b"\r\n"
        return json.loads(self._process.stdout.read(int(head.split(b":")[1])))

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()


def test_beside_stdio_neither_sees_what_is_the_other_s(tmp_path: Path) -> None:
    with http_daemon(tmp_path, *HTTP, stdin=subprocess.PIPE) as daemon:
        pipe = Pipe(daemon.listening().process)
        theirs = daemon.call("by HTTP").json["result"]["task"]["id"]
        ours = pipe.call(sent("by stdio", call_id=7))
        assert ours["id"] == 7
        task = ours["result"]["task"]["id"]
        with daemon.connected() as client:
            for method in ("GetTask", "CancelTask", "SubscribeToTask"):
                client.send(post(rpc(method, {"id": task})))
                assert client.response().json["error"]["code"] == -32001
            client.send(post(rpc("ListTasks", {})))
            assert [each["id"] for each in client.response().json["result"]["tasks"]] == [theirs]
        assert pipe.call(rpc("GetTask", {"id": theirs}))["error"]["code"] == -32001
        assert [each["id"] for each in pipe.call(rpc("ListTasks", {}))["result"]["tasks"]] == [task]
        with daemon.connected() as client:
            client.send(message("wait", "SendStreamingMessage"))
            assert client.head().status == 200
            assert pipe.call(rpc("GetTask", {"id": task}))["result"]["id"] == task
        pipe.close()
        assert daemon.wait() == 0
        assert daemon.process.stdout is not None
        assert daemon.process.stdout.read() == b""


def test_one_identity_has_the_same_tasks_on_either_way(tmp_path: Path) -> None:
    with http_daemon(tmp_path, *HTTP, "--token", f"ada:{digest(SECRET)}", stdin=subprocess.PIPE) as daemon:
        pipe = Pipe(daemon.listening().process)
        task = daemon.call(authorization=f"Bearer {SECRET}").json["result"]["task"]["id"]
        body = json.loads(rpc("GetTask", {"id": task}))
        body["serviceParams"] = {"authorization": f"Bearer {SECRET}"}
        assert pipe.call(json.dumps(body).encode())["result"]["id"] == task
        pipe.close()


def test_json_web_tokens_are_accepted_over_stdio(tmp_path: Path) -> None:
    from support.issuer import AUDIENCE, ISSUER

    keys = written(tmp_path / "keys.json", public(rsa_key(), kid="one"))
    flags = ("--jwt-issuer", ISSUER, "--jwt-audience", AUDIENCE, "--jwt-jwks", keys)
    with http_daemon(tmp_path, *HTTP, *flags, stdin=subprocess.PIPE) as daemon:
        pipe = Pipe(daemon.listening().process)
        for text, accepted in ((token(), True), (token(aud="other"), False)):
            body = json.loads(sent("who"))
            body["serviceParams"] = {"authorization": f"Bearer {text}"}
            answer = pipe.call(json.dumps(body).encode())
            assert ("result" in answer) is accepted
            assert not accepted or "ada" in json.dumps(answer)
            assert text not in daemon.log
        pipe.close()


def test_a_reload_serves_the_new_code_under_the_same_address(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    flags = ("--http", f"127.0.0.1:{port}", "--isolated", "--log-level", "debug", "--reload")
    with http_daemon(tmp_path, *flags, stdin=subprocess.PIPE) as daemon:
        pipe = Pipe(daemon.listening().process)
        assert pipe.call(sent("one"))["result"]["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
        (tmp_path / "worker.py").write_text(AGENT.replace('description="Works."', 'description="Works anew."'))
        wait_until(lambda: daemon.log.count("http.listening") == 2)
        with daemon.connected() as client:
            client.send(b"GET /.well-known/agent-card.json HTTP/1.1\r\nhost: localhost\r\n\r\n")
            assert client.response().json["description"] == "Works anew."
        assert pipe.call(sent("two"))["result"]["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
        pipe.close()
        assert daemon.wait() == 0


# -- what is never logged ------------------------------------------------------------------------------------------


KEY = "9f8e7d6c5b4a39281706f5e4d3c2b1a0"


def test_an_api_key_in_the_query_is_never_logged(tmp_path: Path) -> None:
    source = AGENT.replace(
        'description="Works.")',
        'description="Works.", security_schemes={"key": ApiKey(name="key", location="query")}, security=[requires({"key": []})])',
    ).replace("import Agent", "import Agent, ApiKey, requires")
    with http_daemon(tmp_path, *ALONE, "--token", f"ada:{digest(KEY)}", source=source) as daemon:
        daemon.listening()
        for key, status in ((KEY, 200), (KEY[::-1], 401)):
            for text in ("who", "fail", "nonsense"):
                for path in (b"/?key=", b"/tasks?key=", b"/nowhere?key="):
                    with daemon.connected() as client:
                        client.send(post(sent(f"{text} {key}"), path=path + key.encode()))
                        assert client.response().status == status or path != b"/?key="
            with daemon.connected() as client:
                client.send(b"GET /?key=" + key.encode() + b" HTTP/1.1\r\nx: \0\r\n\r\n")
                client.rest()
        daemon.end()
        assert KEY not in daemon.log
        assert KEY[::-1] not in daemon.log
