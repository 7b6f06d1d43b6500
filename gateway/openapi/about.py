"""What an OpenAPI document says beside the operations: of the server, of its namespaces, of how callers authenticate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from ...daemon.operations.catalogue import server_of
from ...daemon.operations.service import Service
from .security import Security, security_of

if TYPE_CHECKING:
    from ...a2a.card.model import AgentCard
    from ...daemon.operations.access import IdentityProvider


class About(msgspec.Struct, frozen=True, kw_only=True):
    """`url` is where the operations are served; `namespaces` describes each by its name."""

    title: str
    version: str
    url: str = "/"
    namespaces: Mapping[str, str] = {}
    security: Security = Security()


def about(
    services: Sequence[Service], card: AgentCard | None, provider: IdentityProvider | None, *, version: str, url: str
) -> About:
    """Describe a daemon of this `version` that hosts these services and an agent with this card, and that tells callers apart
    by this provider.
    """
    title, shown_version = server_of(services, version)
    return About(
        title=title,
        version=shown_version,
        url=url.rstrip("/") or "/",  # paths begin with a slash
        namespaces={service.namespace: service.description for service in services if service.description},
        security=security_of(provider, card),
    )
