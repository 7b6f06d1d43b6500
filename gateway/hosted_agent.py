"""What the gateway needs of the part that runs agents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    from ..a2a.card import AgentCard, ApiKey
    from ..daemon.host import Host
    from ..daemon.operations.registry import LazyOperations


class HostedAgent(Protocol):
    """The agent of a daemon, as its callers by HTTP see it."""

    @property
    def card(self) -> AgentCard | None:
        """What was declared; None where the operations are the agent's skills."""
        ...

    @property
    def api_keys(self) -> tuple[ApiKey, ...]:
        """Where callers may put an API key, as the card declares."""
        ...

    @property
    def lazy_operations(self) -> LazyOperations:
        """The methods of JSON-RPC, and of HTTP+JSON in A2A 1.0."""
        ...

    @property
    def rest_operations(self) -> LazyOperations:
        """Those of HTTP+JSON in A2A 0.3, under the same names."""
        ...

    def public_card(self, url: str) -> AgentCard:
        """The public card, for clients that reach the daemon under this URL."""
        ...

    async def probe_store(self) -> bool:
        """Whether tasks can be stored now. Takes as long as the store does."""
        ...


def agent_of(host: Host) -> HostedAgent:
    return cast("HostedAgent", host.agent)  # the core knows no card, and one part alone runs agents
