"""What goes along with a call to another daemon: who the mount is, for which span, through how many mounts."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Final

from msgspec import Struct

from ... import call_tracing
from ...daemon.logs import log
from ...daemon.operations.context import MOUNT_DEPTH, Context
from ...errors.exceptions import FailureError
from ...errors.failures import Internal

# How deep mounts are nested: a daemon that mounts itself must come to an end. Counts processes and calls, starts neither.


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


_TRACE: Final = {"traceparent": 256, "tracestate": 512}
"""Members of W3C Trace Context, and their longest texts."""


class MountIdentity(Struct, frozen=True):
    """Who a mount is to the other daemon: by the credential of the app that is called so, else by this token, else nobody."""

    credential: str = ""
    token: str = ""

    def authorization(self, credentials: Mapping[str, str]) -> dict[str, str]:
        """The service param that says it."""
        token = credentials[self.credential] if self.credential else self.token
        return {"authorization": f"Bearer {token}"} if token else {}


def _hold_nothing(size: int) -> None:
    """Nobody counts what is read before a daemon serves."""


hold: Final[ContextVar[Callable[[int], None]]] = ContextVar("hold", default=_hold_nothing)
"""Counts what a large result takes while it is read, for the call in whose context it is."""

NOBODY: Final = MountIdentity()


def carried(ctx: Context, name: str, identity: MountIdentity) -> dict[str, str]:
    """The service params of the call. Raises `FailureError` where a daemon mounts itself."""
    try:
        depth = next_depth(depth_of_call(ctx.service_params))
    except TooDeep as exc:
        log.error("import.too_deep", import_=name, operation=ctx.operation, hint=str(exc))
        raise FailureError(Internal()) from None
    return {**_trace(ctx.service_params), **identity.authorization(ctx.credentials), MOUNT_DEPTH: depth}


def _trace(service_params: Mapping[str, str]) -> Mapping[str, str]:
    """The caller's span, where nothing is recorded here. Where calls are, the client names its own."""
    if call_tracing.tracer is not None:
        return {}
    return {
        member: text
        for member, longest in _TRACE.items()
        if (text := service_params.get(member)) is not None and len(text) <= longest
    }
