"""How deep mounts are nested: a daemon that mounts itself must come to an end. Counts processes and calls, starts neither."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from ...daemon.operations.context import MOUNT_DEPTH

MAX_DEPTH: Final = 8
"""Daemons that may stand behind each other. A chain that somebody builds has two or three."""

VARIABLE: Final = "_DISCREET_MOUNT_DEPTH"
"""Tells a process that is started for a mount how many stand before it."""

TOO_DEEP: Final = f"mounts are nested more than {MAX_DEPTH} deep: does a daemon mount itself?"


class TooDeep(Exception):
    """One mount more would be one too many."""


def depth_of_process(environ: Mapping[str, str] = os.environ) -> int:
    """How many processes, each a mount of the one before, stand before this one."""
    return _number(environ.get(VARIABLE))


def depth_of_call(service_params: Mapping[str, str]) -> int:
    """How many mounts a call has come through."""
    return _number(service_params.get(MOUNT_DEPTH))


def next_depth(depth: int) -> str:
    """The depth of what stands behind. Raises `TooDeep`."""
    if depth >= MAX_DEPTH:
        raise TooDeep(TOO_DEEP)
    return str(depth + 1)


def _number(text: str | None) -> int:
    """Any caller may send one: what is no small number of digits is none of ours."""
    return int(text) if text is not None and text.isascii() and text.isdecimal() and len(text) <= 2 else 0
