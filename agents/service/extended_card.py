"""Answers a request for the extended agent card: the card for callers that have authenticated (A2A 1.0 section 3.1.11)."""

from __future__ import annotations

from typing import final

from ...a2a.card.model import AgentCard
from ...a2a.errors import USE_PUBLIC_CARD
from ...daemon.dispatch.execution import Raised, attempt_now
from ...daemon.logs import log
from ...daemon.operations.identity import Identity
from ...errors.exceptions import FailureError
from ...errors.failures import ExtendedAgentCardNotConfigured, Failure, Internal, InvalidAgentResponse
from .authorization import Authorization
from .card_builder import CardBuilder, InvalidCard


@final
class ExtendedCard:
    """One per daemon, for all versions."""

    def __init__(self, cards: CardBuilder, authorization: Authorization) -> None:
        self._cards = cards
        self._authorization = authorization

    def of(self, identity: Identity | None, *, url: str, unsupported: Failure) -> AgentCard:
        """The card for this caller, who has reached the daemon under this URL; empty over stdio.

        Raises `FailureError`: `unsupported` where the agent announces no extended card, `AuthenticationRequired` without an
        identity, `ExtendedAgentCardNotConfigured` where there is none, `InvalidAgentResponse` where the agent made none,
        `Internal` where it raised.
        """
        if not self._cards.has_extended:
            raise FailureError(unsupported)
        if identity is None:
            raise self._authorization.authentication_required()
        card = attempt_now(lambda: self._cards.extended(identity, url), step="agent.extended")
        if isinstance(card, Raised):
            log.error("agent.failed", exc=card.exc)
            invalid = issubclass(type(card.exc), InvalidCard)
            raise FailureError(InvalidAgentResponse() if invalid else Internal())
        if card is None:
            raise FailureError(ExtendedAgentCardNotConfigured(suggestion=USE_PUBLIC_CARD))
        return card
