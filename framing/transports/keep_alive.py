"""Socket options by which the system itself asks now and then whether the other end is there. Opens no socket."""

from __future__ import annotations

import socket
from typing import Final

_PROBE_SECONDS: Final = 30
_LOST_PROBES: Final = 4
"""An end that vanished without a word is noticed after about two minutes, also by a stream that only listens."""


def keep_alive_options() -> list[tuple[int, int, int]]:
    """As `setsockopt` takes them, as far as the system has them."""
    options = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    for name, value in (
        ("TCP_KEEPIDLE", _PROBE_SECONDS),  # Linux, Windows
        ("TCP_KEEPALIVE", _PROBE_SECONDS),  # macOS
        ("TCP_KEEPINTVL", _PROBE_SECONDS),
        ("TCP_KEEPCNT", _LOST_PROBES),
    ):
        if hasattr(socket, name):
            options.append((socket.IPPROTO_TCP, getattr(socket, name), value))
    return options
