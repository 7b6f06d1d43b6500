"""A log of the test's own, and its writer."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from discreet.daemon.logs import Logger, LogWriter, start_logging
from support.stderr_pipe import JSON


@pytest.fixture
def logger() -> Logger:
    return Logger()


@pytest.fixture
def started(logger: Logger) -> Iterator[Callable[..., LogWriter]]:
    """Starts logs as JSON from debug on and sees to it that they are closed."""
    running: list[LogWriter] = []

    def begin(fd: int, **options: Any) -> LogWriter:
        running.append(start_logging(JSON, fd, {}, version="1.2.3", logger=logger, **options))
        return running[-1]

    yield begin
    for logs in running:
        logs.close(0)
