"""Loads a recording, for `discreet replay` and `discreet show`. Plays nothing."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from ..daemon.settings import UsageError
from ..framing.events import Framing
from ..recording.format import Entry, Recording, RecordingError, read_entries, read_recording
from ..recording.script import Script, build_script


class LoadedRecording(msgspec.Struct, frozen=True):
    """What is needed of a recording to replay it. `exit_status` is the server's, None unless it ended by itself."""

    script: Script
    framing: Framing
    exit_status: int | None


def load_recording(path: str, framing: Framing | None) -> LoadedRecording:
    """Read the file. `framing` None is the recorded one. Raises `UsageError` for a file that is no recording."""
    with _usage_errors(path):
        recording = read_recording(path)
        script = build_script(recording)
    return LoadedRecording(script, framing or _framing(recording), _exit_status(recording))


def open_entries(path: str) -> Iterator[Entry]:
    """Read the file entry by entry. Raises `UsageError` where it is no recording."""
    entries = read_entries(path)
    while True:
        with _usage_errors(path):
            entry = next(entries, None)
        if entry is None:
            return
        yield entry


@contextmanager
def _usage_errors(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        raise UsageError(f"{path}: {os.strerror(exc.errno or 0)}") from exc
    except RecordingError as exc:
        raise UsageError(str(exc)) from exc


def _framing(recording: Recording) -> Framing:
    """Return the framing of the recorded client. `auto` that was never decided is the daemon's default."""
    framing = recording.start.framing
    return "content-length" if framing == "auto" else framing


def _exit_status(recording: Recording) -> int | None:
    ended = recording.end
    return None if ended is None or ended.status is None or ended.status < 0 else ended.status
