"""Standard error as a pipe whose reader a test lets read, or not."""

import json
import os
import threading

from discreet.daemon.logs import LogSettings

from .waits import DEADLINE_SECONDS

JSON = LogSettings(level="debug", format="json")


class Reader:
    """The parent's end of stderr. It reads all the time, or from `read` on; `lines` is for when all was written."""

    def __init__(self, *, reads: bool = True) -> None:
        self.fd, self.stderr = os.pipe()
        self._lines: list[dict[str, object]] = []
        self._thread = threading.Thread(target=self._read, daemon=True)
        if reads:
            self.read()
        else:
            fill(self.stderr)

    def read(self) -> None:
        self._thread.start()

    def _read(self) -> None:
        with open(self.fd, "rb") as file:
            self._lines += [json.loads(line) for line in file if line.strip()]

    def lines(self) -> list[dict[str, object]]:
        os.close(self.stderr)
        self._thread.join(DEADLINE_SECONDS)
        assert not self._thread.is_alive(), "somebody else still holds the writing end"
        return self._lines

    def vanish(self) -> None:
        """For a reader that never reads: gives the pipe back."""
        os.close(self.fd)
        os.close(self.stderr)


def fill(fd: int) -> None:
    """Leaves no room in a pipe."""
    os.set_blocking(fd, False)
    try:
        while True:
            os.write(fd, b"\n" * 4096)
    except BlockingIOError:
        os.set_blocking(fd, True)
