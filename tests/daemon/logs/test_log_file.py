"""The log in a file: who may read it, and what happens where it can't be written."""

import errno
import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from discreet.daemon.logs import Logger, LogSettings, start_logging
from support.stderr_pipe import Reader
from support.waits import DEADLINE_SECONDS, wait_until


def test_a_full_disk_loses_lines_and_says_so_when_it_can() -> None:
    """/dev/full takes nothing, ever: what can be seen from outside is that nothing is raised and all is counted."""
    logger = Logger()
    logs = start_logging(LogSettings(level="debug", file="/dev/full"), 2, {}, logger=logger)
    logger.error("lost")
    assert logs.close(DEADLINE_SECONDS) == 2


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


def _directory(tmp_path: Path) -> str:
    return str(tmp_path)


def _missing_folder(tmp_path: Path) -> str:
    return str(tmp_path / "missing" / "daemon.log")


def _fifo_without_reader(tmp_path: Path) -> str:
    os.mkfifo(tmp_path / "fifo")
    return str(tmp_path / "fifo")


def _null_character(tmp_path: Path) -> str:
    return str(tmp_path / "a\0b")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        (_directory, errno.EISDIR),
        (_missing_folder, errno.ENOENT),
        (_fifo_without_reader, errno.ENXIO),
        (_null_character, errno.EINVAL),
    ],
)
def test_a_file_that_can_t_be_written_is_a_warning_on_stderr(
    tmp_path: Path, logger: Logger, name: Callable[[Path], str], reason: int
) -> None:
    reader = Reader()
    settings = LogSettings(format="json", file=name(tmp_path))
    start_logging(settings, reader.stderr, {}, logger=logger).close(DEADLINE_SECONDS)
    [line] = reader.lines()
    assert (line["level"], line["event"], line["reason"]) == ("warn", "logs.file_unusable", errno.errorcode[reason])


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
