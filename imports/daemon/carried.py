"""What goes along with a call to another daemon: who the mount is, for which span, through how many mounts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from ... import call_tracing
from ...daemon.logs import log
from ...daemon.operations.context import MOUNT_DEPTH, Context
from ...errors.exceptions import FailureError
from ...errors.failures import Internal
from .depth import TooDeep, depth_of_call, next_depth

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
