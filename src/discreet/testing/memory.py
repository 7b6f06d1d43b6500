"""A peer to a daemon in the event loop of a test. Starts nothing itself: see `memory_daemon`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import TYPE_CHECKING, Any

from ..async_block import async_block
from ..client import Peer, attach
from ..client.peer import DEFAULT_TIMEOUT
from ..daemon.operations.access import IdentityProvider
from ..daemon.operations.service import Service
from .memory_daemon import memory_daemon
from .settings import client_framing, settings_of

if TYPE_CHECKING:
    from ..agents import Agent


@async_block
async def in_memory(
    *hosted: Service | Agent,
    timeout: float | None = DEFAULT_TIMEOUT,
    provider: IdentityProvider | None = None,
    credentials: Mapping[str, str] | None = None,
    **settings: Any,  # fields of `Settings`, each of its own type
) -> AsyncGenerator[Peer]:
    """A peer to a daemon that hosts these services, and at most one agent, in this event loop:

        async with in_memory(notes, scopes=["notes:read"]) as peer:
            assert await peer.call("notes/count", type=int) == 0

    `timeout` is how long a call waits, in seconds (None: no limit). The settings are those of docs/settings.md with `_`
    for `-`. Settings about the process (apps, logs, parent) have no effect, and neither the environment nor a settings
    file is read. `provider` and `credentials` are the objects that the settings `identity` and `credential` name: they
    say who callers are, and what `ctx.credentials` holds.

    When the block ends, the daemon's log events of level warning and above are written to `sys.stderr`, with the
    tracebacks of handlers. Leaving the block ends the daemon's input; requests that still run have the drain window to
    finish. An exception that leaves the block cancels everything at once.

    Raises `DeclarationError` for services that can't be hosted together, `UsageError` for a wrong value of a setting,
    `TypeError` for an unknown setting and for what is no service or agent (apps by their names: `spawned`).
    """
    chosen = settings_of(settings)
    async with (
        memory_daemon(hosted, chosen, provider=provider, credentials=credentials) as transport,
        attach(transport, framing=client_framing(chosen, hosted), timeout=timeout) as peer,
    ):
        yield peer
