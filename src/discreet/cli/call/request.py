"""The struct of one call. Starts nothing, sends nothing."""

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

import msgspec

from ...client import PLAIN, Dialect
from ...client.peer import DEFAULT_TIMEOUT
from ...framing.events import Framing
from .params import Params

Progress: TypeAlias = Literal["lines", "status"]
"""How progress is shown."""


class RemoteCall(msgspec.Struct, frozen=True):
    """One call: the server to start, or the URL of one, the method and its params, and how to call it.

    `is_discreet` says that the server is `discreet serve`. `timeout` is in seconds, for the result or for each event, and
    `handshake_timeout` for each answer of a handshake; None is no limit. `retries` is how often the call may be repeated.
    `idempotent` says that repeating is harmless even if the call took effect; None leaves that to the server's list of
    operations. `framing` None is the dialect's. What the server tells of the call's progress is a line of JSON each on stderr,
    or replaces the one before on the line of a terminal; with None it is not asked to tell.
    """

    server: Sequence[str] | str
    framing: Framing | None
    method: str
    params: Params
    stream: bool
    timeout: float | None
    handshake_timeout: float | None = DEFAULT_TIMEOUT
    is_discreet: bool = False
    retries: int = 0
    idempotent: bool | None = None
    service_params: Mapping[str, str] | None = None
    dialect: Dialect = PLAIN
    progress: Progress | None = None
