"""`discreet record --tail`: the session on stderr as it goes, as `discreet show` prints it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from discreet.cli.main import main
from discreet.framing.encoder import encode_frame
from support.programs import environment
from support.recorder import ECHO, INITIALIZE, python, record, recorded
from support.waits import DEADLINE_SECONDS

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="plays with POSIX pipes and terminals")

GITHUB = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0dF3hJ6"
NOTE = {"jsonrpc": "2.0", "method": "note"}


def frame(**params: object) -> bytes:
    return encode_frame(msgspec.json.encode({**NOTE, "params": params}), "content-length")


def test_what_is_printed_is_what_show_prints_of_the_recording(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = encode_frame(INITIALIZE, "content-length") + b"junk\r\n\r\n" + frame(long="x" * 5_000, odd="\x1b[31m\u202e")
    session, out, err = record(tmp_path, python(ECHO), "--tail", data=data)
    assert out == data
    assert main(["show", str(session.file)]) == 0
    assert err.decode() == capsys.readouterr().out


def test_a_line_comes_while_the_session_runs(tmp_path: Path) -> None:
    with recorded(tmp_path, python(ECHO), "--tail") as session:
        session.write(encode_frame(INITIALIZE, "content-length"))
        lines = [session.stderr.readline() for _ in range(3)]
        assert session.process.poll() is None
        assert [line.split(b" ms  ", 1)[1].split(b" ")[:3] for line in lines[1:]] == [
            ["→".encode(), b"1", b"initialize"],
            ["←".encode(), b"1", b"initialize"],
        ]
        session.stdin.close()
        assert session.end() == 0


def test_no_secret_is_printed(tmp_path: Path) -> None:
    data = frame(password="hunter2-hunter2", text=f"a {GITHUB} b") + frame(again="hunter2-hunter2")
    _, out, err = record(tmp_path, python(ECHO), "--tail", data=data)
    assert out == data
    assert err.count(b"<redacted>") == 6
    assert b"hunter2" not in err and GITHUB.encode() not in err


def test_an_unread_stderr_holds_up_neither_the_session_nor_its_end(tmp_path: Path) -> None:
    data = frame(text="x" * 100) * 5_000
    with recorded(tmp_path, python(ECHO), "--tail") as session:
        session.write(data[:100_000])
        assert session.read(100_000) == data[:100_000]
        half = len(data) // 2
        for at in range(100_000, half, 50_000):
            part = data[at : min(at + 50_000, half)]
            session.write(part)
            assert session.read(len(part)) == part
        session.stdin.close()
        assert session.end() == 0
        assert len(session.said()) > 2_000  # the recording is whole, too
        assert session.recording.end is not None


def test_a_stderr_without_a_reader_ends_the_printing_only(tmp_path: Path) -> None:
    data = frame(text="x") * 200
    with recorded(tmp_path, python(ECHO), "--tail") as session:
        session.stderr.close()
        for _ in range(20):
            session.write(data)
            assert session.read(len(data)) == data
        session.stdin.close()
        assert session.end() == 0
        assert len(session.said()) == 2 * 20 * 200


def test_the_servers_stderr_passes_once_beside_the_lines(tmp_path: Path) -> None:
    session, _, err = record(tmp_path, python("import os; os.write(2, b'%d\\n' % 2**70)"), "--tail", "--stderr")
    assert err.count(b"1180591620717411303424") == 1
    assert b'"1180591620717411303424"' in session.file.read_bytes()


@pytest.mark.parametrize(("no_color", "coloured"), [("", True), ("1", False)])
def test_lines_have_colours_on_a_terminal_unless_no_color_is_set(no_color: str, coloured: bool, tmp_path: Path) -> None:
    controller, terminal = os.openpty()
    words = ["record", "--tail", "-o", str(tmp_path / "a.jsonl"), "--", *python(ECHO)]
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "discreet", *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=terminal,
        env=environment(NO_COLOR=no_color),
    )
    os.close(terminal)
    process.communicate(encode_frame(INITIALIZE, "content-length"), DEADLINE_SECONDS)
    with open(controller, "rb", buffering=0) as screen:
        shown = screen.read(4096)
    assert b"initialize" in shown
    assert (b"\x1b[" in shown) is coloured


def test_characters_that_the_encoding_of_stderr_lacks_are_escaped(tmp_path: Path) -> None:
    with recorded(tmp_path, python(ECHO), "--tail", PYTHONIOENCODING="ascii") as session:
        _, err = session.process.communicate(encode_frame(INITIALIZE, "content-length"), DEADLINE_SECONDS)
    assert err.isascii() and rb"\u2192 1 initialize" in err


def test_without_a_file_to_keep_it_goes_to_the_null_device(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "discreet", "record", "--tail", "-o", os.devnull, "--", *python(ECHO)],
        input=encode_frame(INITIALIZE, "content-length"),
        capture_output=True,
        env=environment(),
        cwd=tmp_path,
        timeout=DEADLINE_SECONDS,
    )
    assert done.returncode == 0
    assert b"initialize" in done.stderr
    assert list(tmp_path.iterdir()) == []
