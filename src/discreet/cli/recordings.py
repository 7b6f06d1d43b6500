"""Loads the recording that `discreet replay` plays. Plays nothing."""

import os

import msgspec

from ..daemon.settings import UsageError
from ..framing.events import Framing
from ..recording.format import Recording, RecordingError, read_recording
from ..recording.json_values import UNREADABLE
from ..recording.script import Script, dialogue_of


class LoadedRecording(msgspec.Struct, frozen=True):
    """A recording and the script made from it."""

    recording: Recording
    script: Script

    @property
    def framing(self) -> Framing:
        """The framing of the recorded client. `auto` that was never decided is the daemon's default."""
        framing = self.recording.start.framing
        return "content-length" if framing == "auto" else framing

    @property
    def exit_status(self) -> int | None:
        """The exit status of the recorded server; None unless it ended by itself."""
        ended = self.recording.ended
        return None if ended is None or ended.status is None or ended.status < 0 else ended.status


def load_recording(path: str) -> LoadedRecording:
    """Read the file. Raises `UsageError` if it can't be read or is no recording."""
    try:
        recording = read_recording(path)
        return LoadedRecording(recording, dialogue_of(recording))
    except OSError as exc:
        raise UsageError(f"{path}: {os.strerror(exc.errno or 0)}") from exc
    except RecordingError as exc:
        raise UsageError(str(exc)) from exc
    except UNREADABLE as exc:
        raise UsageError(f"{path}: a message in it is not JSON") from exc
