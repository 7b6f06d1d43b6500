"""Defines the core's view of an agent: its declaration, and the part that runs agents for the daemon."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import anyio.abc

    from .dispatch.metrics import Durations
    from .operations.registry import LazyOperations
    from .operations.request import ContextBackend


class AgentDeclaration:
    """The base of what is hosted as an agent. A daemon hosts at most one."""

    @property
    def name(self) -> str:
        raise NotImplementedError

    @property
    def version(self) -> str:
        """The agent's own; empty where it says none."""
        raise NotImplementedError

    @property
    def takes_api_keys(self) -> bool:
        """Whether it declares that callers may show API keys."""
        raise NotImplementedError


class AgentPart(Protocol):
    """Runs the declared agent, or the agent of a daemon whose operations are skills. One per process."""

    @property
    def declared(self) -> AgentDeclaration | None:
        """The hosted agent; None where the operations are its skills."""
        ...

    @property
    def lazy_operations(self) -> LazyOperations:
        """The agent's methods, for the registry."""
        ...

    @property
    def durable(self) -> bool:
        """Whether tasks are kept outside this process, in a store that is opened and closed."""
        ...

    def open_store(self) -> None:
        """Open a durable store. `close_store` must follow at the end. Blocks. Raises `AppError`, in one line."""
        ...

    def close_store(self) -> None:
        """Close the store if it was opened and the agent never began. Blocks, and logs what fails."""
        ...

    def begin(self, tasks: anyio.abc.TaskGroup, load: Callable[[], None], context_backend: ContextBackend) -> None:
        """Run in this task group from now on. `load()` has the registry take up the lazy operations."""
        ...

    on_updated: Callable[[Callable[[str], bool]], None]
    """Called, on the loop, when other daemons have announced resources: with what tells of a URI whether it may have changed."""

    def announce(self, uri: str) -> None:
        """Have the other daemons on a durable store know that a resource has changed. On the loop."""
        ...

    @property
    def idle(self) -> bool:
        """True when the agent has nothing under way."""
        ...

    def drain(self, seconds: float) -> None:
        """Begin no task that another daemon could begin: this one is about to end. Callers that still wait after so many seconds
        are told what is stored."""
        ...

    def on_idle(self, look: Callable[[], None]) -> None:
        """Have `look()` called whenever it may have become idle."""
        ...

    @property
    def commits(self) -> Durations:
        """How long the store took for each commit."""
        ...

    @property
    def failed_commits(self) -> int: ...

    async def count_tasks(self) -> Mapping[str, int]:
        """How many tasks the store has, by state; empty where it does not tell within a second."""
        ...

    async def count_queued(self) -> int | None:
        """How many tasks wait in the store's queue; None where it does not tell within a second."""
        ...
