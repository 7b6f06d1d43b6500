"""What listens for HTTP clients, where the settings ask for it. Imports nothing of the extra's libraries where they don't."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from ...daemon.apps import AppError

if TYPE_CHECKING:
    from ...daemon.daemon import Listener
    from ...daemon.host import Host


@contextmanager
def opened_listener(host: Host) -> Generator[Listener]:
    """It listens during the block. Raises `AppError`, in one line, where it can't."""
    settings = host.settings
    if settings.http is None:
        raise AppError("--no-stdio leaves no way in; add --http HOST:PORT")
    from importlib.util import find_spec  # late: few daemons listen

    if find_spec("uvicorn") is None:
        raise AppError("--http needs uvicorn: pip install 'discreet[http]'")
    from .listener import HttpListener  # late: it loads them

    with closing(HttpListener(host, settings)) as listener:
        yield listener
