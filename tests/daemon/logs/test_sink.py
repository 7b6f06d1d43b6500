"""Where the log goes: which sink, form, level and colour are chosen; a file, who may read it, and what happens where it can not be written."""

import json
import os
import pty
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from discreet.daemon.logs import Logger, LogSettings, start_logging
from discreet.daemon.logs.sink import Sink, open_sink, wants_color
from support.stderr_pipe import Reader
from support.waits import DEADLINE_SECONDS, wait_until


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    yield reading, writing
    os.close(reading)
    os.close(writing)


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    ours, theirs = pty.openpty()
    yield ours, theirs
    os.close(ours)
    os.close(theirs)


def journal_of(fd: int) -> dict[str, str]:
    status = os.fstat(fd)
    return {"JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}"}


def first_line(ends: tuple[int, int], settings: LogSettings, environ: dict[str, str]) -> bytes:
    """What the other end of `ends` reads of one error."""
    logger = Logger()
    logs = start_logging(settings, ends[1], environ, logger=logger)
    logger.set_level("error")
    logger.error("e", n=4242)
    logs.close(DEADLINE_SECONDS)
    said = b""
    while not (b"4242" in said and said.endswith(b"\n")):  # a terminal passes on in pieces what was written
        said += os.read(ends[0], 65536)
    return said.splitlines()[-1]


def level_of(fd: int, environ: dict[str, str], settings: LogSettings | None = None) -> str:
    logger = Logger()
    start_logging(settings or LogSettings(), fd, environ, logger=logger).close(DEADLINE_SECONDS)
    return logger.level


def test_a_pipe_gets_keyvalue_lines_from_warn_on(pipe: tuple[int, int]) -> None:
    assert first_line(pipe, LogSettings(), {}).endswith(b"level=error event=e n=4242")
    assert level_of(pipe[1], {}) == "warn"


def test_a_terminal_gets_console_lines_from_info_on(terminal: tuple[int, int]) -> None:
    assert b"\x1b[" in first_line(terminal, LogSettings(), {})
    assert level_of(terminal[1], {}) == "info"


def test_the_journal_gets_priorities_from_info_on(pipe: tuple[int, int]) -> None:
    environ = journal_of(pipe[1])
    assert first_line(pipe, LogSettings(), environ).startswith(b"<3>timestamp=")
    assert level_of(pipe[1], environ) == "info"


@pytest.mark.parametrize("said", ["1:1", "", "x:y", "1"])
def test_a_journal_that_is_not_behind_stderr_is_none(pipe: tuple[int, int], said: str) -> None:
    assert first_line(pipe, LogSettings(), {"JOURNAL_STREAM": said}).startswith(b"timestamp=")


def test_a_named_file_gets_keyvalue_lines_from_info_on(pipe: tuple[int, int], tmp_path: Path) -> None:
    path = tmp_path / "daemon.log"
    assert level_of(pipe[1], {}, LogSettings(file=str(path))) == "info"
    assert "level=info event=daemon.started" in path.read_text()


def test_a_stderr_that_is_redirected_gets_warnings_only(tmp_path: Path) -> None:
    with open(tmp_path / "stderr", "wb") as file:
        assert level_of(file.fileno(), {}) == "warn"
    assert (tmp_path / "stderr").read_text() == ""


def test_what_the_user_says_goes_before_what_the_sink_is(terminal: tuple[int, int]) -> None:
    assert first_line(terminal, LogSettings(format="json"), {}).startswith(b'{"timestamp": ')
    assert first_line(terminal, LogSettings(format="journald"), {}).startswith(b"<3>")
    assert first_line(terminal, LogSettings(format="keyvalue"), {}).startswith(b"timestamp=")
    assert level_of(terminal[1], {}, LogSettings(level="ERROR")) == "error"


def test_a_pipe_gets_the_console_without_colour_unless_told(pipe: tuple[int, int]) -> None:
    assert b"\x1b" not in first_line(pipe, LogSettings(format="console"), {})
    assert b"\x1b" in first_line(pipe, LogSettings(format="console", color=True), {})


@pytest.mark.parametrize(
    ("settings", "environ", "colored"),
    [
        (LogSettings(), {}, True),
        (LogSettings(), {"TERM": "dumb"}, False),
        (LogSettings(color=False), {}, False),
        (LogSettings(color=True), {"TERM": "dumb"}, True),
    ],
)
def test_a_terminal_is_coloured_unless_somebody_says_no(
    terminal: tuple[int, int], settings: LogSettings, environ: dict[str, str], colored: bool
) -> None:
    sink, _ = open_sink(settings, terminal[1], environ)
    assert wants_color(settings, sink, environ) is colored
    sink.close()
    assert (b"\x1b" in first_line(terminal, settings, environ)) is colored


def test_an_empty_name_of_a_file_is_none(pipe: tuple[int, int]) -> None:
    sink, fault = open_sink(LogSettings(file=""), pipe[1], {})
    assert (sink.name, sink.kind, fault) == ("stderr", "stream", None)
    sink.close()


def test_a_closed_sink_takes_nothing_and_may_be_closed_again(pipe: tuple[int, int]) -> None:
    sink = Sink(os.dup(pipe[1]), kind="stream", name="stderr")
    assert sink.write(b"line\n")
    sink.close()
    sink.close()
    assert not sink.write(b"line\n")
    assert os.read(pipe[0], 100) == b"line\n"


def test_a_full_disk_is_no_reason_to_be_silent_for_good_but_a_lost_reader_is() -> None:
    full = Sink(os.open("/dev/full", os.O_WRONLY), kind="file", name="/dev/full")
    assert (full.write(b"line\n"), full.silent) == (False, False)
    full.close()
    reading, writing = os.pipe()
    os.close(reading)
    gone = Sink(writing, kind="stream", name="stderr")
    assert (gone.write(b"line\n"), gone.silent) == (False, True)
    gone.close()


def inheritable() -> set[int]:
    open_now = [int(name) for name in os.listdir("/proc/self/fd")]
    return {fd for fd in open_now if os.path.exists(f"/proc/self/fd/{fd}") and os.get_inheritable(fd)}


def test_children_inherit_no_descriptor_of_the_logs(pipe: tuple[int, int], tmp_path: Path) -> None:
    before = inheritable()
    for name in ("", str(tmp_path / "daemon.log")):
        sink, _ = open_sink(LogSettings(file=name), pipe[1], {})
        assert sink.write(b"line\n")
        assert inheritable() == before
        sink.close()


def test_a_sink_whose_descriptor_an_app_has_closed_goes_on_with_that_of_its_caller(pipe: tuple[int, int]) -> None:
    sink, _ = open_sink(LogSettings(), pipe[1], {})
    os.close(sink._fd)
    assert sink.write(b"a line\n")
    assert os.read(pipe[0], 100) == b"a line\n"
    sink.close()


def test_a_log_file_whose_descriptor_an_app_has_closed_is_opened_anew(tmp_path: Path, pipe: tuple[int, int]) -> None:
    sink, _ = open_sink(LogSettings(file=str(tmp_path / "log")), pipe[1], {})
    os.close(sink._fd)
    assert sink.write(b"a line\n")
    assert (tmp_path / "log").read_bytes() == b"a line\n"
    sink.close()


def test_a_file_gets_the_lines_and_is_for_its_owner_alone(tmp_path: Path, logger: Logger) -> None:
    reader, path = Reader(), tmp_path / "daemon.log"
    logs = start_logging(LogSettings(file=str(path)), reader.stderr, {}, logger=logger)
    logger.info("tick")
    assert logs.close(DEADLINE_SECONDS) == 0
    assert [re.search(r"event=(\S+)", line)[1] for line in path.read_text().splitlines()] == ["daemon.started", "tick"]  # type: ignore[index]
    assert path.stat().st_mode & 0o077 == 0
    assert reader.lines() == []
    assert logs.sink_name == str(path)


def test_a_file_that_is_there_is_appended_to(tmp_path: Path, logger: Logger) -> None:
    reader, path = Reader(), tmp_path / "daemon.log"
    path.write_text("kept\n")
    start_logging(LogSettings(format="json", file=str(path)), reader.stderr, {}, logger=logger).close(DEADLINE_SECONDS)
    first, second = path.read_text().splitlines()
    assert (first, json.loads(second)["event"]) == ("kept", "daemon.started")
    assert reader.lines() == []


@pytest.mark.parametrize(
    ("name", "reason"), [("", "EISDIR"), ("missing/daemon.log", "ENOENT"), ("fifo", "ENXIO"), ("a\0b", "EINVAL")]
)
def test_a_file_that_can_t_be_written_is_a_warning_on_stderr(
    tmp_path: Path, logger: Logger, name: str, reason: str
) -> None:
    reader = Reader()
    os.mkfifo(tmp_path / "fifo")
    settings = LogSettings(format="json", file=f"{tmp_path}/{name}")
    start_logging(settings, reader.stderr, {}, logger=logger).close(DEADLINE_SECONDS)
    [line] = reader.lines()
    assert (line["level"], line["event"], line["reason"]) == ("warn", "logs.file_unusable", reason)


def test_a_renamed_file_is_left_and_a_new_one_begun_from_any_directory(
    tmp_path: Path, logger: Logger, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, path, rotated = Reader(), tmp_path / "daemon.log", tmp_path / "daemon.log.1"
    monkeypatch.chdir(tmp_path)
    logs = start_logging(LogSettings(file=path.name), reader.stderr, {}, logger=logger)
    wait_until(lambda: "daemon.started" in path.read_text())
    path.rename(rotated)
    monkeypatch.chdir("/")  # as an app may
    logs.reopen()
    wait_until(path.exists)  # although nothing is logged
    logger.info("tick")
    assert logs.close(DEADLINE_SECONDS) == 0
    assert "tick" in path.read_text() and "tick" not in rotated.read_text()
    assert path.stat().st_mode & 0o077 == 0


def test_where_no_new_file_can_be_made_the_old_one_stays_and_says_so(tmp_path: Path, logger: Logger) -> None:
    reader, folder = Reader(), tmp_path / "logs"
    folder.mkdir()
    logs = start_logging(LogSettings(file=str(folder / "daemon.log"), level="error"), reader.stderr, {}, logger=logger)
    folder.rename(tmp_path / "moved")
    logs.reopen()
    logger.error("tick")
    assert logs.close(DEADLINE_SECONDS) == 0
    first, second = (tmp_path / "moved" / "daemon.log").read_text().splitlines()
    assert "event=logs.file_unusable" in first and "reason=ENOENT" in first
    assert "event=tick" in second


def test_a_log_on_stderr_has_nothing_to_reopen(logger: Logger) -> None:
    reader = Reader()
    logs = start_logging(LogSettings(level="info", format="json"), reader.stderr, {}, logger=logger, announce=False)
    logs.reopen()
    logger.info("tick")
    assert logs.close(DEADLINE_SECONDS) == 0
    assert [line["event"] for line in reader.lines()] == ["tick"]
