"""Serves the public agent card (A2A 1.0, sections 8.2, 8.6 and 14.3) in the version that is asked for, for caches, too."""

from __future__ import annotations

from collections.abc import Callable
from time import time
from typing import TYPE_CHECKING, Any, Final, final

import msgspec
from starlette.responses import Response

from ...a2a.card_v03 import card_to_v03
from ...a2a.version import covers_version
from ...errors.failures import A2AVersion
from ..responses.etags import with_etag

if TYPE_CHECKING:
    from ...a2a.card import AgentCard
    from ..requests import GatewayRequest


# Which version of A2A a request is of (A2A 1.0, section 3.6).


DEFAULT_VERSION: Final = "0.3"
"""The version of a request that names none (A2A 1.0, section 3.6.2)."""


def asked_version(request: GatewayRequest) -> str | None:
    """The version of A2A that a request names, in its headers or its query."""
    version = request.headers.get("a2a-version") or request.query_params.get("A2A-Version") or ""
    return version.strip() or None


def version_to_answer(request: GatewayRequest) -> A2AVersion:
    """The version in which a request is answered whose method does not tell it."""
    return "1.0" if covers_version("1.0", asked_version(request) or DEFAULT_VERSION) else "0.3"


MAX_AGE_SECONDS: Final = 300
"""How long a cache may use a card without asking: cards change with a new start only."""

_CACHING: Final = {"cache-control": f"public, max-age={MAX_AGE_SECONDS}", "vary": "a2a-version, host"}

WELL_KNOWN: Final = "/.well-known/agent-card.json"
WELL_KNOWN_OLD: Final = "/.well-known/agent.json"
"""The name before A2A 0.3.0."""

CARD_PATHS: Final = frozenset({WELL_KNOWN, WELL_KNOWN_OLD})


@final
class Cards:
    """`make(url)` makes the card of a gateway that is reached under this URL."""

    def __init__(self, make: Callable[[str], AgentCard]) -> None:
        self._make = make
        self._started = int(time())

    def answer(self, request: GatewayRequest, url: str) -> Response:
        """The card, or 304 where the client has it already (RFC 9110, section 13)."""
        body = msgspec.json.encode(_written(self._make(url), asked_version(request)))
        return with_etag(
            request, Response(body, media_type="application/json"), caching=_CACHING, modified=self._started
        )


def _written(card: AgentCard, version: str | None) -> object:
    """The card in the form of this version. Clients that name none get one that both versions can read: which of them they
    speak is not known, and those of 1.0 don't say so either when they ask for the card."""
    if version is not None:
        return card_to_v03(card) if covers_version("0.3", version) else card
    return _merged(msgspec.to_builtins(card), msgspec.to_builtins(card_to_v03(card)))


def _merged(new: Any, old: Any) -> Any:  # JSON
    """The members of both; those of the new one where both have one."""
    if isinstance(new, dict) and isinstance(old, dict):
        return {**old, **{name: _merged(value, old[name]) if name in old else value for name, value in new.items()}}
    if isinstance(new, list | tuple) and isinstance(old, list | tuple) and len(new) == len(old):
        return [_merged(*pair) for pair in zip(new, old, strict=True)]
    return new
