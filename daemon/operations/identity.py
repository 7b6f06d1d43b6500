"""Who calls: what a provider makes of credentials. Loads with the client's model of A2A, so it imports nothing of the daemon."""

from __future__ import annotations

import msgspec


class Identity(msgspec.Struct, frozen=True):
    """A caller. `subject` names it for handlers and logs and holds no credential. `scopes` is None for every scope."""

    subject: str
    scopes: frozenset[str] | None = frozenset()
