"""Calls an agent of A2A with typed messages and tasks, over stdin and stdout or by HTTP."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Unpack

from ...a2a.card import AgentCard
from ...a2a.types import (
    Artifact,
    Authentication,
    Message,
    Part,
    PushConfig,
    Role,
    SendConfiguration,
    Task,
    TaskState,
    TaskStatus,
)
from ...a2a.v10_model import TaskArtifactUpdate, TaskStatusUpdate
from ..connect import ConnectOptions, connect
from ..validation import StrPath, is_url
from .client import AgentClient, AgentEvent, Content, EventStream, text_of

if TYPE_CHECKING:
    from ...a2a.signing import CardKeys


@asynccontextmanager
async def connect_agent(
    server: Sequence[StrPath] | str, *, card_keys: str | None = None, **options: Unpack[ConnectOptions]
) -> AsyncGenerator[AgentClient]:
    """Connect to an agent for the length of the block:

        async with connect_agent("http://127.0.0.1:8000/") as agent:
            task = await agent.send("How are you?")

    `server` is a command, or a URL as for `connect`: the server's, below which the card is, or the card's own
    (`…/agent-card.json`). The card says where and how the agent is called. A server without a card is called at the URL. The
    options are those of `connect`.

    `card_keys` are trusted public keys, as a JWK Set or as PEM texts: every card, the extended one too, must have a signature of
    one of them (A2A 1.0, section 8.4).

    Raises as `connect` does. Raises `ConnectionFailed` also for an agent without JSON-RPC of A2A 1.0, and `InvalidReply` for a
    wrong card, and for one that is not signed as asked. Raises `ValueError` for `card_keys` that are none, and `ImportError` for
    them without the extra `jwt`.
    """
    keys = None if card_keys is None else _trusted(card_keys)
    if isinstance(server, str) and is_url(server):
        from .card import find_agent  # late: HTTP takes time to load

        place = await find_agent(server, options, keys)
        async with connect(place.url, **options) as peer:
            yield AgentClient(peer, card=place.card, tenant=place.tenant, keys=keys)
    else:
        async with connect(server, **options) as peer:
            yield AgentClient(peer, keys=keys)


def _trusted(card_keys: str) -> CardKeys:
    from ...a2a.signing import CardKeys  # late: few clients check signatures

    return CardKeys(card_keys)


__all__ = [
    "AgentCard",
    "AgentClient",
    "AgentEvent",
    "Artifact",
    "Authentication",
    "Content",
    "EventStream",
    "Message",
    "Part",
    "PushConfig",
    "Role",
    "SendConfiguration",
    "Task",
    "TaskArtifactUpdate",
    "TaskState",
    "TaskStatus",
    "TaskStatusUpdate",
    "connect_agent",
    "text_of",
]
