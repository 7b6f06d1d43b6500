"""`discreet record`: every byte passes, nobody waits for the recording, and no secret is in it."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import threading
from pathlib import Path

import msgspec
import pytest

from discreet.cli.main import main
from discreet.framing.encoder import encode_frame
from discreet.recording.format import ClosedEntry, EndEntry, MessageEntry, StderrEntry, read_recording
from support.programs import environment
from support.recorder import ECHO, INITIALIZE, python, record, recorded
from support.waits import DEADLINE_SECONDS

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="plays with POSIX pipes and signals")

GITHUB = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0dF3hJ6"


SERVE = [sys.executable, "-P", "-m", "discreet", "serve"]


def test_a_session_with_the_daemon_is_recorded(tmp_path: Path) -> None:
    with recorded(tmp_path, SERVE) as session:
        session.write(encode_frame(INITIALIZE, "content-length"))
        head = session.read(len(b"Content-Length: 206\r\n\r\n"))
        body = session.read(int(head.split()[1]))
        session.stdin.close()
        assert session.end() == 0
        assert session.said() == [("client", INITIALIZE), ("server", body)]
        assert [type(line) for line in session.recording.entries] == [
            MessageEntry,
            MessageEntry,
            ClosedEntry,
            ClosedEntry,
            EndEntry,
        ]
        assert all(a.ms <= b.ms for a, b in zip(session.recording.entries, session.recording.entries[1:], strict=False))


@pytest.mark.parametrize(
    ("framing", "data"),
    [
        ("content-length", b""),
        ("newline", b"\x00\xff garbage \r\n\r\n" * 1000),
        ("content-length", b"Content-Length: 99999999999999999999\r\n\r\n{}"),
        ("content-length", b"Content-Length: 20\r\n\r\n{"),
        ("newline", b"[" * 100_000),
        ("content-length", encode_frame(b'"\xff"', "content-length") * 3),
    ],
    ids=["nothing", "junk", "oversize", "cut", "deep", "invalid"],
)
def test_any_bytes_pass_untouched(framing: str, data: bytes, tmp_path: Path) -> None:
    session, out, _ = record(tmp_path, python(ECHO), f"--framing={framing}", data=data)
    assert out == data
    assert session.recording.end == EndEntry(ms=session.recording.entries[-1].ms, status=0)


def test_each_byte_passes_at_once(tmp_path: Path) -> None:
    with recorded(tmp_path, python(ECHO)) as session:
        for byte in encode_frame(INITIALIZE, "content-length"):
            session.write(bytes([byte]))
            assert session.read(1) == bytes([byte])
        session.stdin.close()
        assert session.end() == 0
        assert [body for _, body in session.said()] == [INITIALIZE, INITIALIZE]


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
    with recorded(
        tmp_path, python("import os\nos.read(1 - 1, 1)\nos.write(1, b'!')\nimport signal\nsignal.pause()")
    ) as session:
        session.write(b"x")
        assert session.read(1) == b"!"
        os.set_blocking(session.stdin.fileno(), False)
        sent = 0
        try:
            for _ in range(1000):
                wrote = session.stdin.write(b"x" * 65536)
                if wrote is None:
                    break
                sent += wrote
        except BlockingIOError:
            pass
        assert sent < 8 * 1024 * 1024


def test_stderr_passes_through_and_is_not_recorded_unless_asked_for(tmp_path: Path) -> None:
    session, _, err = record(tmp_path, python("import os; os.write(2, b'\\xff no line end')"))
    assert err == b"\xff no line end"
    assert not [line for line in session.recording.entries if isinstance(line, StderrEntry)]


def test_stderr_is_recorded_scrubbed_and_passes_as_it_is(tmp_path: Path) -> None:
    code = (
        "import os, sys\ndata = os.fsencode(sys.argv[1]) * 20000 + b'last'\nwhile data: data = data[os.write(2, data):]"
    )
    line = f"token={GITHUB} \udcff\n"
    session, _, err = record(tmp_path, python(code, line), "--stderr")
    text = os.fsencode(line) * 20_000 + b"last"
    assert err == text
    notes = [line.text for line in session.recording.entries if isinstance(line, StderrEntry)]
    assert len(notes) == 20_001 and notes[-1] == "last"
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


def test_a_file_that_can_not_be_written_any_more_stops_nothing(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("needs a device that is always full")
    words = ["record", "-o", "/dev/full", "--", *python(ECHO)]
    done = subprocess.run(
        [sys.executable, "-P", "-m", "discreet", *words],
        input=b"hello",
        capture_output=True,
        env=environment(),
        timeout=DEADLINE_SECONDS,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, b"hello")
    assert done.stderr.startswith(b"discreet: the recording can't be written")
    assert done.stderr.count(b"\n") == 1


def test_without_a_name_the_file_is_a_new_one_here(tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-m", "discreet", "record", "--", *python("")]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment(), stdin=subprocess.DEVNULL, capture_output=True, timeout=30, check=True
    )
    (file,) = tmp_path.glob("recording-*.jsonl")
    assert file.name.encode() in done.stderr
    assert read_recording(file).end is not None


def test_words_behind_the_first_dashes_are_the_servers(tmp_path: Path) -> None:
    code = "import sys; sys.stdout.write(repr(sys.argv[1:]))"
    _, out, _ = record(tmp_path, python(code, "--output", "x", "--", "-h"))
    assert out == repr(["--output", "x", "--", "-h"]).encode()


@pytest.mark.skipif(sys.platform == "win32", reason="names that are no UTF-8 are POSIX's")
def test_words_that_are_no_utf8_are_passed_on_and_recorded_with_escapes(tmp_path: Path) -> None:
    code = "import os, sys; os.write(1, os.fsencode(sys.argv[1]))"
    session, out, _ = record(tmp_path, python(code, os.fsdecode(b"a\xff")))
    assert out == b"a\xff"
    assert session.recording.start.command[-1] == "a\\udcff"


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


@pytest.mark.parametrize(
    "argv",
    [[], ["--"], ["-o", "/no/such/dir/x", "--", "true"], ["--framing=odd", "--", "true"], ["true"]],
    ids=shlex.join,
)
def test_wrong_usage_starts_nothing(argv: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["record", *argv]) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("\n") == 1
