"""Descriptors of every kind that stdin and stdout may be."""

from __future__ import annotations

import os
import pty
import socket
import tty

LARGE = os.urandom(1024) * 20 * 1024
"""20 MiB: two bodies of the largest size that a daemon takes by default."""


def raw_terminal() -> tuple[int, int]:
    """The controlling and the controlled side; nothing is echoed or translated."""
    controlling, controlled = pty.openpty()
    tty.setraw(controlled)
    return controlling, controlled


def socket_pair() -> tuple[int, int]:
    left, right = socket.socketpair()
    return left.detach(), right.detach()


def pipe_to_write() -> tuple[int, int]:
    reading, writing = os.pipe()
    return reading, writing


def null_device() -> int:
    return os.open(os.devnull, os.O_RDWR)


def closed_number() -> int:
    fd = null_device()
    os.close(fd)
    return fd
