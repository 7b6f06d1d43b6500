"""`discreet record`: every byte passes, nobody waits for the recording, no secret is in it, and no server is left behind."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

import msgspec
import pytest

from discreet.cli.main import main
from discreet.framing.encoder import encode_frame
from discreet.recording.format import EndEntry, MessageEntry, OmittedEntry, Recording, StderrEntry, read_recording
from discreet.recording.relay import BOUNDS
from support.programs import DISCREET, environment, finished, on_terminal
from support.waits import DEADLINE_SECONDS

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="plays with POSIX pipes, signals and terminals")

GITHUB: Final = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0dF3hJ6"
INITIALIZE: Final = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}'
FRAMED: Final = encode_frame(INITIALIZE, "content-length")
ECHO: Final = "import os\nwhile data := os.read(0, 65536):\n while data: data = data[os.write(1, data):]"

HASTY: Final = """
import sys
from discreet.client import EndBounds
from discreet.cli.main import main
from discreet.recording import relay
relay.BOUNDS = EndBounds(eof=1.0, terminate=0.2)
sys.exit(main(sys.argv[1:]))
"""
"""The program, which ends servers sooner."""


def python(code: str, *words: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", code, *words]


class Session:
    """A server behind a recorder, and this test as its client."""

    def __init__(self, file: Path, server: Sequence[str], *flags: str, hasty: bool = False, **env: str) -> None:
        self.file = file
        program = [sys.executable, "-P", "-c", HASTY] if hasty else DISCREET
        self.process = subprocess.Popen(
            [*program, "record", "-o", str(file), *flags, "--", *server],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=environment(**env),
        )
        self.stdin, self.stdout, self.stderr = (
            _there(stream) for stream in (self.process.stdin, self.process.stdout, self.process.stderr)
        )

    def write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[self.stdin.write(rest) or 0 :]

    def read(self, size: int) -> bytes:
        data = b""
        while len(data) < size and (chunk := self.stdout.read(size - len(data))):
            data += chunk
        return data

    def end(self) -> int:
        return self.process.wait(DEADLINE_SECONDS)

    @property
    def recording(self) -> Recording:
        return read_recording(self.file)

    def said(self) -> list[bytes]:
        return [bytes(entry.message) for entry in self.recording.entries if isinstance(entry, MessageEntry)]


def _there(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None
    return stream


@contextmanager
def recorded(tmp_path: Path, server: Sequence[str], *flags: str, hasty: bool = False, **env: str) -> Iterator[Session]:
    session = Session(tmp_path / "session.jsonl", server, *flags, hasty=hasty, **env)
    alarm = threading.Timer(DEADLINE_SECONDS, session.process.kill)
    alarm.start()
    try:
        yield session
    finally:
        alarm.cancel()
        session.process.kill()
        session.process.wait()
        for stream in (session.stdin, session.stdout, session.stderr):
            stream.close()


def record(tmp_path: Path, server: Sequence[str], *flags: str, data: bytes = b"") -> tuple[Session, bytes, bytes]:
    """A whole session: all input at once; what came out, and what was said on stderr."""
    with recorded(tmp_path, server, *flags) as session:
        out, err = session.process.communicate(data, DEADLINE_SECONDS)
        return session, out, err


# -- what passes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [b"", FRAMED + b"\x00\xff garbage \r\n\r\n" * 1000], ids=["nothing", "junk"])
def test_any_bytes_pass_untouched(data: bytes, tmp_path: Path) -> None:
    session, out, _ = record(tmp_path, python(ECHO), data=data)
    assert out == data
    assert session.recording.end == EndEntry(ms=session.recording.entries[-1].ms, status=0)


def test_each_byte_passes_at_once(tmp_path: Path) -> None:
    with recorded(tmp_path, python(ECHO)) as session:
        for byte in FRAMED:
            session.write(bytes([byte]))
            assert session.read(1) == bytes([byte])
        session.stdin.close()
        assert session.end() == 0
        assert session.said() == [INITIALIZE, INITIALIZE]


def test_twenty_megabytes_reach_a_slow_reader_byte_for_byte(tmp_path: Path) -> None:
    body = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "result": "word é " * 2_500_000})
    data = encode_frame(body, "content-length")
    with recorded(tmp_path, python(ECHO)) as session:
        writer = threading.Thread(target=lambda: (session.write(data), session.stdin.close()))
        writer.start()
        received = bytearray()
        while chunk := session.stdout.read(4096 if len(received) < 1_000_000 else 1 << 20):
            received += chunk
        writer.join()
        assert received == data
        assert session.end() == 0
        assert len(session.recording.entries) == 5


def test_a_client_that_does_not_read_stops_the_server(tmp_path: Path) -> None:
    flood = (
        "import os, select\n"
        "size = 0\n"
        "os.set_blocking(1, False)\n"
        "while select.select([], [1], [], 0.5)[1]: size += os.write(1, b'x' * 4096)\n"
        "os.write(2, b'%d' % size)"
    )
    with recorded(tmp_path, python(flood)) as session:
        size = int(session.stderr.read(20))
        assert 0 < size < 4 * 1024 * 1024
        assert len(session.read(size)) == size
        assert session.end() == 0


def test_a_server_that_does_not_read_stops_the_client(tmp_path: Path) -> None:
    code = "import os, signal\nos.read(0, 1)\nos.write(1, b'!')\nsignal.pause()"
    with recorded(tmp_path, python(code)) as session:
        session.write(b"x")
        assert session.read(1) == b"!"
        os.set_blocking(session.stdin.fileno(), False)
        sent = 0
        while wrote := session.stdin.write(b"x" * 65536):
            sent += wrote
            assert sent < 8 * 1024 * 1024


def test_stderr_passes_as_it_is_and_is_recorded_scrubbed_if_asked_for(tmp_path: Path) -> None:
    code = (
        "import os, sys\ndata = os.fsencode(sys.argv[1]) * 20000 + b'last'\nwhile data: data = data[os.write(2, data):]"
    )
    line = f"token={GITHUB} \udcff\n"
    for flags, recorded_lines in (((), 0), (("--stderr",), 20_001)):
        session, _, err = record(tmp_path, python(code, line), *flags)
        assert err == os.fsencode(line) * 20_000 + b"last"
        notes = [entry.text for entry in session.recording.entries if isinstance(entry, StderrEntry)]
        assert (len(notes), notes[-1:]) == (recorded_lines, ["last"] if flags else [])
        assert GITHUB not in session.file.read_text()


def test_no_secret_is_in_the_file_wherever_it_was(tmp_path: Path) -> None:
    known = "the-deploy-Password-of-ours"
    bodies = [
        {"jsonrpc": "2.0", "id": GITHUB, "method": "m", "params": {"a": f"x {known} y", "password": "hunter2"}},
        {"jsonrpc": "2.0", "id": 1, "method": "m", "params": [["Cookie", "hunter2"], {"name": "PIN_CODE", "value": 1}]},
        {"jsonrpc": "2.0", "method": "m", "serviceParams": {"authorization": "Bearer hunter2"}},
    ]
    data = b"".join(encode_frame(msgspec.json.encode(body), "content-length") for body in bodies)
    junk = f"junk {known} {GITHUB} hunter2".encode()
    with recorded(tmp_path, python(ECHO, "--token", "hunter2"), "--stderr", DEPLOY_PASSWORD=known) as session:
        out, _ = session.process.communicate(data + junk, DEADLINE_SECONDS)
        assert out == data + junk
        text = session.file.read_text()
        assert [found for found in (known, GITHUB, "hunter2") if found in text] == []
        assert len(session.said()) == 6


# -- the command line and the file ------------------------------------------------------------------------------------


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_file_that_can_not_be_written_any_more_stops_nothing() -> None:
    done = finished([*DISCREET, "record", "-o", "/dev/full", "--", *python(ECHO)], stdin="hello")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (0, "hello", 1)
    assert done.stderr.startswith("discreet: the recording can't be written")


def test_without_a_name_the_file_is_a_new_one_here(tmp_path: Path) -> None:
    done = finished([*DISCREET, "record", "--", *python("")], tmp_path)
    (file,) = tmp_path.glob("recording-*.jsonl")
    assert file.name in done.stderr
    assert read_recording(file).end is not None


def test_words_behind_the_first_dashes_are_the_servers_as_they_are(tmp_path: Path) -> None:
    words = ["--output", "x", "--", "-h", os.fsdecode(b"a\xff")]
    code = "import os, sys; sys.stdout.write(repr([os.fsencode(word) for word in sys.argv[1:]]))"
    session, out, _ = record(tmp_path, python(code, *words))
    assert out == repr([os.fsencode(word) for word in words]).encode()
    assert session.recording.start.command[-2:] == ("-h", "a\\udcff")


@pytest.mark.parametrize(
    ("command", "status"), [(["no-such-command-anywhere"], 127), (["/"], 126)], ids=["missing", "unusable"]
)
def test_a_command_that_can_not_be_run_is_one_line_and_a_shells_status(
    command: list[str], status: int, tmp_path: Path
) -> None:
    session, out, err = record(tmp_path, command)
    assert (session.process.returncode, out) == (status, b"")
    assert err.startswith(b"discreet: ") and err.count(b"\n") == 1
    assert not session.file.exists()


def test_a_file_that_is_there_is_replaced_when_the_server_runs_and_not_before(tmp_path: Path) -> None:
    (tmp_path / "session.jsonl").write_bytes(b"kept" * 1000)
    session, _, _ = record(tmp_path, ["no-such-command-anywhere"])
    assert session.file.read_bytes() == b"kept" * 1000
    session, _, _ = record(tmp_path, python(""))
    assert session.recording.end is not None
    assert b"kept" not in session.file.read_bytes()


@pytest.mark.parametrize(
    "argv", [[], ["--"], ["-o", "/no/such/dir/x", "--", "true"], ["--framing=odd", "--", "true"]], ids=shlex.join
)
def test_wrong_usage_starts_nothing(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["record", *argv]) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("\n") == 1


# -- how a session ends -----------------------------------------------------------------------------------------------


def test_the_clients_end_is_the_servers_end_of_input_and_answers_still_come(tmp_path: Path) -> None:
    _, out, _ = record(tmp_path, python("import sys\ndata = sys.stdin.read()\nprint(len(data), end='')"), data=b"abc")
    assert out == b"3"


def test_a_server_that_still_writes_after_the_clients_end_may_finish(tmp_path: Path) -> None:
    code = "import os, time\nos.read(0, 1)\nfor _ in range(4): time.sleep(0.4); os.write(1, b'.')"
    with recorded(tmp_path, python(code), hasty=True) as session:
        session.stdin.close()
        assert session.stdout.read() == b"...."  # it takes longer than a silent server may


def test_a_server_that_closes_its_stdout_goes_on_reading(tmp_path: Path) -> None:
    code = "import os, sys\nos.close(1)\nos.write(2, os.read(0, 9))"
    with recorded(tmp_path, python(code)) as session:
        assert session.stdout.read() == b""
        session.write(b"hello")
        assert session.stderr.read() == b"hello"
        assert session.end() == 0


def test_a_server_that_ends_ends_the_session_with_its_status(tmp_path: Path) -> None:
    with recorded(tmp_path, python("raise SystemExit(7)")) as session:
        assert session.stdout.read() == b""
        assert session.end() == 7
        ended = session.recording.end
        assert ended is not None and ended.status == 7


def test_a_server_that_dies_within_a_frame_is_recorded_up_to_there(tmp_path: Path) -> None:
    code = "import os\nos.write(1, b'Content-Length: 100\\r\\n\\r\\n{\"jso')\nos.kill(os.getpid(), 9)"
    with recorded(tmp_path, python(code)) as session:
        assert session.stdout.read() == b'Content-Length: 100\r\n\r\n{"jso'
        assert session.end() == 137
        lost = [entry for entry in session.recording.entries if isinstance(entry, OmittedEntry)]
        assert [(entry.sender, entry.reason, entry.size) for entry in lost] == [("server", "length-mismatch", 5)]
        ended = session.recording.end
        assert ended is not None and ended.status == -9


def test_signals_reach_the_server_which_decides(tmp_path: Path) -> None:
    numbers = [getattr(signal, f"SIG{name}") for name in ("INT", "HUP", "QUIT", "USR1", "USR2", "TERM")]
    code = (
        "import os, signal, sys\n"
        f"for number in {[*map(int, numbers)]}: signal.signal(number, lambda number, _: os.write(1, b'%d\\n' % number))\n"
        "os.write(1, b'ready\\n')\n"
        "while True: signal.pause()"
    )
    with recorded(tmp_path, python(code)) as session:
        assert session.stdout.readline() == b"ready\n"
        for number in numbers:
            session.process.send_signal(number)
            assert session.stdout.readline() == b"%d\n" % number


def test_a_server_that_reads_no_more_is_seen_by_the_client_and_the_signal_that_ends_it_is_in_the_status(
    tmp_path: Path,
) -> None:
    code = "import os, signal\nos.close(0)\nos.write(1, b'!')\nsignal.pause()"
    with recorded(tmp_path, python(code)) as session:
        assert session.read(1) == b"!"
        with pytest.raises(BrokenPipeError):
            while True:
                session.write(b"x" * 65536)
        session.process.terminate()
        assert session.end() == 128 + signal.SIGTERM


def test_a_killed_recorder_leaves_whole_lines_and_a_server_without_input(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "session.jsonl")  # its end is the end of whoever records
    fifo = os.open(tmp_path / "session.jsonl", os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(fifo, True)
    with recorded(tmp_path, python(f"{ECHO}\nos.write(2, b'end of input')")) as session, open(fifo, "rb") as file:
        session.write(FRAMED)
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
    assert [type(entry) for entry in recording.entries] == [MessageEntry, MessageEntry]
    assert recording.end is None


STUBBORN: Final = (
    "import os, signal, time\n"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "os.write(1, b'%d\\n' % os.getpid())\n"
    "while True: time.sleep(60)"
)
"""Ignores the end of its input, and SIGTERM."""

ENDINGS: Final[dict[str, Callable[[Session], object]]] = {
    "the client ends its input": lambda session: session.stdin.close(),
    "the client is gone": lambda session: (session.stdin.close(), session.stdout.close()),
    "a SIGTERM": lambda session: session.process.terminate(),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_server_that_would_stay_is_killed_in_bounded_time(ending: str, tmp_path: Path) -> None:
    with recorded(tmp_path, python(STUBBORN), hasty=True) as session:
        pid = int(session.stdout.readline())
        ENDINGS[ending](session)
        assert session.end() == 128 + signal.SIGKILL
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_the_page_says_after_how_many_seconds() -> None:
    page = (Path(__file__).parents[2] / "docs" / "recording.md").read_text(encoding="utf-8")
    [(kill, silent, terminated)] = re.findall(
        r"(\d) seconds later, SIGKILL.*?(\d) seconds;.*?; (\d) seconds", page, re.S
    )
    assert (float(kill), float(silent), float(terminated)) == (BOUNDS.terminate, BOUNDS.eof, BOUNDS.eof)


# -- --tail: the session on stderr as it goes -------------------------------------------------------------------------


def note(**params: object) -> bytes:
    body = msgspec.json.encode({"jsonrpc": "2.0", "method": "note", "params": params})
    return encode_frame(body, "content-length")


def test_what_is_printed_is_what_show_prints_of_the_recording(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = FRAMED + b"junk\r\n\r\n" + note(long="x" * 5_000, odd="\x1b[31m\u202e", password=GITHUB)
    session, out, err = record(tmp_path, python(ECHO), "--tail", data=data)
    assert out == data
    assert main(["show", str(session.file)]) == 0
    assert err.decode() == capsys.readouterr().out


def test_a_line_comes_while_the_session_runs(tmp_path: Path) -> None:
    with recorded(tmp_path, python(ECHO), "--tail") as session:
        session.write(FRAMED)
        lines = [session.stderr.readline() for _ in range(3)]
        assert session.process.poll() is None
        assert [line.split(b" ms  ", 1)[1].split(b" ")[:3] for line in lines[1:]] == [
            ["→".encode(), b"1", b"initialize"],
            ["←".encode(), b"1", b"initialize"],
        ]
        session.stdin.close()
        assert session.end() == 0


def test_an_unread_stderr_holds_up_neither_the_session_nor_its_end(tmp_path: Path) -> None:
    part = note(text="x" * 100) * 250
    with recorded(tmp_path, python(ECHO), "--tail") as session:
        for _ in range(10):
            session.write(part)
            assert session.read(len(part)) == part
        session.stdin.close()
        assert session.end() == 0
        assert len(session.said()) == 2 * 10 * 250  # the recording is whole, too
        assert session.recording.end is not None


def test_a_stderr_without_a_reader_ends_the_printing_only(tmp_path: Path) -> None:
    data = note(text="x") * 200
    with recorded(tmp_path, python(ECHO), "--tail") as session:
        session.stderr.close()
        for _ in range(5):
            session.write(data)
            assert session.read(len(data)) == data
        session.stdin.close()
        assert session.end() == 0
        assert len(session.said()) == 2 * 5 * 200


def test_the_servers_stderr_passes_once_beside_the_lines(tmp_path: Path) -> None:
    session, _, err = record(tmp_path, python("import os; os.write(2, b'%d\\n' % 2**70)"), "--tail", "--stderr")
    assert err.count(b"1180591620717411303424") == 1
    assert b'"1180591620717411303424"' in session.file.read_bytes()


@pytest.mark.parametrize(("no_color", "coloured"), [("", True), ("1", False)])
def test_lines_have_colours_on_a_terminal_unless_no_color_is_set(no_color: str, coloured: bool) -> None:
    words = [*DISCREET, "record", "--tail", "-o", os.devnull, "--", *python(ECHO)]
    _, shown = on_terminal(words, "stderr", stdin=FRAMED.decode(), NO_COLOR=no_color)
    assert "initialize" in shown
    assert ("\x1b[" in shown) is coloured


def test_characters_that_the_encoding_of_stderr_lacks_are_escaped(tmp_path: Path) -> None:
    with recorded(tmp_path, python(ECHO), "--tail", PYTHONIOENCODING="ascii") as session:
        _, err = session.process.communicate(FRAMED, DEADLINE_SECONDS)
    assert err.isascii() and rb"\u2192 1 initialize" in err
