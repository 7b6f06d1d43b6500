"""How the real process begins and ends: end of input, signals, a parent or a reader that goes away."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from discreet.framing.encoder import encode_frame
from support.backends import BACKENDS
from support.programs import has_ended
from support.waits import DEADLINE_SECONDS, wait_until
from support.wire import request

Spawn = Callable[..., Any]


@pytest.mark.parametrize("backend", BACKENDS)
def test_requests_still_in_the_pipe_at_end_of_input_are_all_answered(spawn: Spawn, backend: str) -> None:
    child = spawn("serve", "./app.py:app", "--backend", backend)
    child.write(
        b"".join(
            request(n, ("app/echo", "app/pid", "app/sleep")[n % 3], {} if n % 3 != 2 else {"seconds": 0.01})
            for n in range(3000)
        )
    )
    child.close_stdin()
    assert sorted(message["id"] for message in child.read_all()) == list(range(3000))
    assert child.wait() == 0


@pytest.mark.parametrize(
    ("number", "backend"), [*zip([signal.SIGTERM, signal.SIGINT, signal.SIGHUP], BACKENDS, strict=False)]
)
def test_a_signal_lets_running_requests_finish_and_ends_with_0(
    spawn: Spawn, number: signal.Signals, backend: str
) -> None:
    child = spawn("serve", "./app.py:app", "--backend", backend)
    child.write(request(1, "app/sleep", {"seconds": 0.3}) + request(2, "version"))
    assert child.read()["id"] == 2
    child.signal(number)
    assert child.read() == {"jsonrpc": "2.0", "id": 1, "result": "slept"}
    assert child.wait() == 0


def test_what_still_runs_at_the_end_of_the_window_is_answered_unavailable(spawn: Spawn) -> None:
    child = spawn("serve", "./app.py:app", "--drain-timeout", "0.4")
    child.write(b"".join(request(n, m, {"seconds": 3600}) for n, m in enumerate(["app/sleep", "app/block"])))
    child.write(request("s", "app/stubborn") + request("v", "version"))
    assert child.read()["id"] == "v"
    child.signal(signal.SIGTERM)
    answers = {message["id"]: message["error"]["data"]["code"] for message in child.read_all()}
    assert answers == {0: "UNAVAILABLE", 1: "UNAVAILABLE", "s": "UNAVAILABLE"}
    assert child.wait() == 0


def test_a_second_signal_ends_at_once(spawn: Spawn) -> None:
    child = spawn("serve", "./app.py:app", "--drain-timeout", "60", "--log-level", "info")
    child.write(request(1, "app/sleep", {"seconds": 3600}) + request(2, "version"))
    child.read()
    child.signal(signal.SIGTERM)
    child.stderr_until("daemon.draining")
    child.signal(signal.SIGTERM)
    assert child.wait() == 1
    assert "event=daemon.aborted reason=signal" in child.stderr()


SLOW_LOOP = """
import sys, time
from discreet import Service

app = Service("app")

class SlowToLoad:
    def find_spec(self, name, path=None, target=None):
        if name == "anyio":
            sys.meta_path.remove(self)
            time.sleep(1)  # several drain windows

sys.meta_path.insert(0, SlowToLoad())
"""


def test_a_machine_that_loads_the_event_loop_slowly_is_no_reason_to_give_up_the_client(
    spawn: Spawn, app_directory: Path
) -> None:
    (app_directory / "slow.py").write_text(SLOW_LOOP)
    child = spawn("serve", "./slow.py:app", "--drain-timeout", "0.2")
    assert child.call(1, "version")["id"] == 1
    assert child.end() == 0
    assert "client.unresponsive" not in child.stderr()


def test_what_waits_for_a_loop_that_loads_slowly_is_answered_after_a_signal(spawn: Spawn, app_directory: Path) -> None:
    (app_directory / "slow.py").write_text(SLOW_LOOP + "@app.query()\nasync def wait() -> None: ...\n")
    child = spawn("serve", "./slow.py:app", "--drain-timeout", "0.2")
    child.write(request(1, "app/wait") + request("v", "version"))
    assert child.read()["id"] == "v"
    child.signal(signal.SIGTERM)
    assert [message["id"] for message in child.read_all()] == [1]
    assert child.wait() == 0


@pytest.mark.parametrize(("method", "hangs_up"), [("app/hog", True), ("app/hog", False), ("app/hog_in_a_task", True)])
def test_a_handler_that_keeps_the_loop_busy_can_not_keep_the_process_alive(
    spawn: Spawn, app_directory: Path, method: str, hangs_up: bool
) -> None:
    child = spawn("serve", "./app.py:app", "--drain-timeout", "0.3")
    child.call(1, "version")
    child.write(request(2, method, {"seconds": 3600}))
    wait_until((app_directory / "hogging").exists)
    if hangs_up:
        child.close_stdin()
    else:
        child.signal(signal.SIGTERM)
    assert child.wait() == 1


def test_a_thread_that_prints_without_end_does_not_abort_the_process_at_its_end(spawn: Spawn) -> None:
    child = spawn("serve", "./app.py:app", stderr=subprocess.DEVNULL)
    child.call(1, "app/shout")
    assert child.end() == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_a_signal_that_was_ignored_at_the_start_stays_ignored(spawn: Spawn, number: signal.Signals) -> None:
    child = spawn("serve", "./app.py:app", preexec_fn=lambda: signal.signal(number, signal.SIG_IGN))
    child.call(1, "version")
    child.signal(number)
    assert child.call(2, "version")["id"] == 2
    assert child.end() == 0


def test_shutdown_answers_drains_and_exits_without_waiting_for_the_client(spawn: Spawn) -> None:
    child = spawn("serve", "./app.py:app", "--drain-timeout", "2")  # for so long it waits for `exit`
    child.call("warm", "app/sleep", {"seconds": 0})  # loading the event loop is no part of the window
    child.write(request(1, "app/sleep", {"seconds": 0.2}) + request(2, "shutdown") + request(3, "version"))
    answers = {message["id"]: message for message in child.read_all()}
    assert answers[2]["result"] == {"message": "Shutting down gracefully"}
    assert answers[3]["error"] == {
        "code": -32000, "message": "Shutting down", "data": {"code": "UNAVAILABLE", "retryable": True},
    }  # fmt: skip
    assert answers[1]["result"] == "slept"
    assert child.wait() == 0


EXIT = encode_frame(b'{"jsonrpc":"2.0","method":"exit"}', "content-length")

LAST_WORDS = {
    "end of input": ([], True),
    "exit": ([EXIT], False),
    "shutdown and end of input": ([request(1, "shutdown")], True),
    "shutdown and exit": ([request(1, "shutdown"), EXIT], False),
    "shutdown and exit at once": ([request(1, "shutdown") + EXIT], False),
}


@pytest.mark.parametrize(
    ("case", "warm"), [*((case, True) for case in LAST_WORDS), ("end of input", False), ("shutdown and exit", False)]
)
def test_with_nothing_left_to_do_the_daemon_ends_without_waiting_for_the_window(
    spawn: Spawn, case: str, warm: bool
) -> None:
    written, closed = LAST_WORDS[case]
    child = spawn("serve", "./app.py:app", "--drain-timeout", "600")
    if warm:
        child.call("warm", "app/sleep", {"seconds": 0})  # its handler needs the event loop
    for data in written:
        child.write(data)
        for _ in range(data.count(b"shutdown")):
            child.read()
    if closed:
        child.close_stdin()
    assert (child.wait(), child.read_all()) == (0, [])


@pytest.mark.parametrize("case", LAST_WORDS)
def test_last_words_that_arrived_before_the_daemon_started_end_it_too(spawn: Spawn, case: str) -> None:
    written, closed = LAST_WORDS[case]
    reading, writing = os.pipe()
    os.write(writing, b"".join(written))
    if closed:
        os.close(writing)
    child = spawn("serve", "./app.py:app", "--drain-timeout", "600", stdin=reading)
    os.close(reading)
    assert child.wait() == 0
    if not closed:
        os.close(writing)


def test_a_reader_that_goes_away_ends_the_daemon_quietly_with_1(spawn: Spawn) -> None:
    child = spawn("serve", "./app.py:app")
    child.call(1, "version")
    child.process.stdout.close()
    child.write(request(2, "version"))
    assert child.wait() == 1
    assert "Traceback" not in child.stderr()


def test_a_reader_that_goes_away_after_the_end_was_asked_for_is_no_failure(spawn: Spawn) -> None:
    child = spawn("serve", "./app.py:app")
    child.write(request(1, "app/sleep", {"seconds": 0.3}) + request(2, "version"))
    child.read()
    child.process.stdout.close()
    assert child.end() == 0


def test_two_signals_are_no_failure_if_the_client_has_gone(spawn: Spawn) -> None:
    child = spawn("serve", "./app.py:app")
    child.call(1, "app/pid")
    child.process.stdout.close()
    child.signal(signal.SIGINT)
    child.signal(signal.SIGTERM)
    assert child.wait() == 0


def test_a_reader_that_is_slow_at_the_end_gets_everything_within_the_window(spawn: Spawn) -> None:
    child = spawn("serve", "./app.py:app", "--drain-timeout", "600", "--log-level", "info")
    child.write(request(1, "app/big", {"size": 240_000}))
    child.close_stdin()
    child.stderr_until("daemon.draining")
    assert len(child.read()["result"]) == 240_000
    assert child.wait() == 0


# -- other processes --------------------------------------------------------------------------------------------------

PARENT = """
import subprocess, sys
child = subprocess.Popen([*sys.argv[1:]], stdin=0, stdout=1)
print(child.pid, file=sys.stderr, flush=True)
child.wait()
"""


@pytest.mark.parametrize("busy_with", ["nothing", "a handler", "an import"])
def test_the_parents_death_is_noticed_while_a_sibling_holds_stdin_open(
    app_directory: Path, command: list[str], busy_with: str
) -> None:
    (app_directory / "hang.py").write_text("open('hogging', 'x').close()\nwhile True: pass\n")
    app = "./hang.py:app" if busy_with == "an import" else "./app.py:app"
    stdin, stdin_kept_open = os.pipe()
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, *command, "serve", app, "--drain-timeout", "0.4"],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=app_directory,
    )
    assert parent.stdout is not None
    assert parent.stderr is not None
    try:
        pid = int(parent.stderr.readline())
        if busy_with != "an import":
            os.write(stdin_kept_open, request(1, "version"))
            assert b"result" in os.read(parent.stdout.fileno(), 4096)
        if busy_with == "a handler":
            os.write(stdin_kept_open, request(2, "app/hog", {"seconds": 3600}))
        if busy_with != "nothing":
            wait_until((app_directory / "hogging").exists)
        parent.kill()
        parent.wait(DEADLINE_SECONDS)
        wait_until(lambda: has_ended(pid))
    finally:
        parent.kill()
        parent.stdout.close()
        parent.stderr.close()
        for fd in (stdin, stdin_kept_open):
            os.close(fd)


def test_a_server_of_the_network_ends_with_the_process_that_it_is_told_to_follow(spawn: Spawn) -> None:
    followed = subprocess.Popen(["sleep", "3600"])
    try:
        child = spawn("serve", "--http", "127.0.0.1:0", "--no-stdio", f"--parent-pid={followed.pid}")
        child.stderr_until("http.listening")
    finally:
        followed.kill()
        followed.wait()
    assert child.wait() == 0


def test_the_process_that_initialize_names_is_watched_too(spawn: Spawn) -> None:
    other = subprocess.Popen(["sleep", "3600"])
    try:
        child = spawn()
        child.call(1, "initialize", {"processId": other.pid})
        other.kill()
        other.wait()
        assert child.wait() == 0
    finally:
        other.kill()
        other.wait()


def test_a_process_id_that_means_nothing_here_is_ignored(spawn: Spawn) -> None:
    child = spawn()
    for pid in (None, 0, -1, 2**22 + 12345, 2**70, "12", 1.5):
        assert "result" in child.call(1, "initialize", {"processId": pid, "rootUri": None, "capabilities": {}})
        assert child.call(2, "version")["id"] == 2
    assert child.end() == 0


def test_the_processes_that_are_watched_are_bounded(spawn: Spawn) -> None:
    child = spawn("serve", "./app.py:app")
    named = [child.call(n, "app/spawn")["result"] for n in range(20)]
    before = len(os.listdir(f"/proc/{child.process.pid}/fd"))
    for n, pid in enumerate(named):
        assert "result" in child.call(100 + n, "initialize", {"processId": pid})
    wait_until(lambda: len(os.listdir(f"/proc/{child.process.pid}/fd")) - before <= 16)  # one more is open for a moment
    assert child.call("again", "initialize", {"processId": named[0]})["result"]
    os.kill(named[0], signal.SIGKILL)
    assert child.wait() == 0
    assert child.stderr().count("client.too_many_processes") == 4


def test_children_of_handlers_are_ended_with_the_daemon(spawn: Spawn) -> None:
    child = spawn("serve", "./app.py:app")
    pid = child.call(1, "app/spawn")["result"]
    assert not has_ended(pid)
    assert child.end() == 0
    wait_until(lambda: has_ended(pid))


DETACHING = """
import os, subprocess, sys
from discreet import Service

app = Service("app")

DETACHED = "import os, time; os.fork() and os._exit(0); os.setsid(); {more}; print(os.getpid(), flush=True); time.sleep(3600)"
TWICE = "os.fork() and os._exit(0)"
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)"

@app.mutation()
def detach(how: str) -> int:
    more = {"once": "pass", "twice": TWICE, "deaf": DEAF}[how]
    child = subprocess.Popen([sys.executable, "-c", DETACHED.format(more=more)], stdout=subprocess.PIPE, text=True)
    child.wait()
    return int(child.stdout.readline())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists processes")
@pytest.mark.parametrize("number", [None, signal.SIGTERM])
def test_processes_that_detached_themselves_are_ended_with_the_daemon(
    spawn: Spawn, app_directory: Path, number: signal.Signals | None
) -> None:
    (app_directory / "detaching.py").write_text(DETACHING)
    child = spawn("serve", "./detaching.py:app")
    other = spawn("serve", "./detaching.py:app")
    pids = [child.call(1, "app/detach", {"how": how})["result"] for how in ("once", "twice", "deaf")]
    others = other.call(1, "app/detach", {"how": "once"})["result"]
    assert not any(map(has_ended, pids))
    if number is None:
        child.close_stdin()
    else:
        child.signal(number)
    assert child.wait() == 0
    for pid in pids:
        wait_until(lambda pid=pid: has_ended(pid))
    assert not has_ended(others)
    assert other.end() == 0
    wait_until(lambda: has_ended(others))
