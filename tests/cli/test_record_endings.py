"""`discreet record`: how sessions end, whoever ends first, and no server is left behind."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from discreet.framing.encoder import encode_frame
from discreet.recording.format import MessageEntry, OmittedEntry, read_recording
from support.recorder import ECHO, INITIALIZE, python, record, recorded

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="plays with POSIX pipes and signals")


def test_the_clients_end_is_the_servers_end_of_input_and_answers_still_come(tmp_path: Path) -> None:
    _, out, _ = record(tmp_path, python("import sys\ndata = sys.stdin.read()\nprint(len(data), end='')"), data=b"abc")
    assert out == b"3"


def test_a_server_that_closes_its_stdout_goes_on_reading(tmp_path: Path) -> None:
    code = "import os, sys\nos.close(1)\nos.write(2, os.read(0, 9))"
    with recorded(tmp_path, python(code)) as session:
        assert session.stdout.read() == b""
        session.write(b"hello")
        assert session.stderr.read() == b"hello"
        assert session.end() == 0


@pytest.mark.parametrize(
    ("code", "status"),
    [("raise SystemExit(0)", 0), ("raise SystemExit(7)", 7), ("import os; os.kill(os.getpid(), 9)", 137)],
)
def test_a_server_that_ends_ends_the_session_with_its_status(code: str, status: int, tmp_path: Path) -> None:
    with recorded(tmp_path, python(code)) as session:
        assert session.stdout.read() == b""
        assert session.end() == status
        ended = session.recording.end
        assert ended is not None and ended.status == (status if status < 128 else 128 - status)


def test_a_server_that_dies_within_a_frame_is_recorded_up_to_there(tmp_path: Path) -> None:
    code = "import os\nos.write(1, b'Content-Length: 100\\r\\n\\r\\n{\"jso')\nos.kill(os.getpid(), 9)"
    with recorded(tmp_path, python(code)) as session:
        assert session.stdout.read() == b'Content-Length: 100\r\n\r\n{"jso'
        assert session.end() == 137
        lost = [line for line in session.recording.entries if isinstance(line, OmittedEntry)]
        assert [(line.sender, line.reason, line.size) for line in lost] == [("server", "length-mismatch", 5)]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
def test_signals_reach_the_server_which_decides(number: signal.Signals, tmp_path: Path) -> None:
    code = (
        "import os, signal, sys\n"
        "signal.signal(int(sys.argv[1]), lambda *_: (os.write(1, b'got it'), os._exit(5)))\n"
        "os.write(1, b'ready')\n"
        "while True: signal.pause()"
    )
    with recorded(tmp_path, python(code, str(int(number)))) as session:
        assert session.read(5) == b"ready"
        session.process.send_signal(number)
        assert session.stdout.read() == b"got it"
        assert session.end() == 5


def test_a_signal_that_ends_the_server_is_in_the_status(tmp_path: Path) -> None:
    with recorded(tmp_path, python("import os, signal\nos.write(1, b'!')\nsignal.pause()")) as session:
        assert session.read(1) == b"!"
        session.process.terminate()
        assert session.end() == 128 + signal.SIGTERM


def test_a_client_that_has_gone_ends_a_server_that_would_stay(tmp_path: Path) -> None:
    code = "import os, signal\nos.write(1, b'%d\\n' % os.getpid())\nwhile True: signal.pause()"
    with recorded(tmp_path, python(code)) as session:
        pid = int(session.stdout.readline())
        session.stdin.close()
        session.stdout.close()
        session.end()
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_killed_recorder_leaves_whole_lines_and_a_server_without_input(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "session.jsonl")  # its end is the end of whoever records
    fifo = os.open(tmp_path / "session.jsonl", os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(fifo, True)
    with recorded(tmp_path, python(f"{ECHO}\nos.write(2, b'end of input')")) as session, open(fifo, "rb") as file:
        session.write(encode_frame(INITIALIZE, "content-length"))
        session.write(b"Content-Length: 100\r\n\r\n{")
        kept = b""
        while b'"from":"server"' not in kept:
            kept += file.readline()
        session.process.kill()
        assert session.stderr.read() == b"end of input"
        kept += file.read()
    assert kept.endswith(b"}\n")
    (tmp_path / "kept.jsonl").write_bytes(kept)
    recording = read_recording(tmp_path / "kept.jsonl")
    assert [type(line) for line in recording.entries] == [MessageEntry, MessageEntry]
    assert recording.end is None


def test_a_server_that_reads_no_more_is_seen_by_the_client(tmp_path: Path) -> None:
    code = "import os, signal\nos.close(0)\nos.write(1, b'!')\nsignal.pause()"
    with recorded(tmp_path, python(code)) as session:
        assert session.read(1) == b"!"
        with pytest.raises(BrokenPipeError):
            while True:
                session.write(b"x" * 65536)
        session.process.terminate()
        assert session.end() == 128 + signal.SIGTERM


def test_a_server_that_still_writes_after_the_clients_end_may_finish(tmp_path: Path) -> None:
    code = "import os, time\nos.read(0, 1)\nfor _ in range(4): time.sleep(1); os.write(1, b'.')"
    _, out, _ = record(tmp_path, python(code))  # it takes longer than a silent server may
    assert out == b"...."


# -- no server is left behind ------------------------------------------------------------------------------------------

STUBBORN = (
    "import os, signal, time\n"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "os.write(1, b'%d\\n' % os.getpid())\n"
    "while True: time.sleep(60)"
)
"""Ignores the end of its input, and SIGTERM."""


def test_a_server_that_ignores_the_end_of_its_input_is_ended_in_bounded_time(tmp_path: Path) -> None:
    with recorded(tmp_path, python(STUBBORN)) as session:
        assert session.stdout.readline()
        session.stdin.close()
        assert session.end() == 128 + signal.SIGKILL


def test_a_server_that_ignores_sigterm_is_killed_in_bounded_time(tmp_path: Path) -> None:
    with recorded(tmp_path, python(STUBBORN)) as session:
        assert session.stdout.readline()
        session.process.terminate()
        assert session.end() == 128 + signal.SIGKILL
