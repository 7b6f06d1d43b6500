"""Builds the agent card that a daemon with the same settings would serve. Prints nothing, and serves nothing."""

from ..daemon.agents.card.model import AgentCard
from ..daemon.agents.push.notifier import is_push_available
from ..daemon.agents.service.card_builder import CardBuilder, stdio_interfaces
from ..daemon.apps import hosted_of
from ..daemon.credentials import access_of
from ..daemon.dispatch.execution import Raised, attempt_now
from ..daemon.operations.access import PARENT
from ..daemon.operations.registry import Registry
from ..daemon.settings import Settings, UsageError
from ..version import __version__
from .app_import import importing_apps


def build_card(settings: Settings, *, extended: bool) -> AgentCard:
    """Return the public card, or the extended one as a caller with every scope gets it.

    Imports the apps. Raises `UsageError` for apps that can't be hosted, and if there is no extended card.
    """
    with importing_apps():
        hosted = hosted_of(settings)
        Registry(hosted.services)  # checks that the services can be hosted together
        cards = CardBuilder(
            hosted.services,
            hosted.agent,
            access_of(settings),
            version=__version__,
            interfaces=stdio_interfaces(settings),
            pushes=is_push_available(),
        )
        return _extended(cards) if extended else cards.public()


def _extended(cards: CardBuilder) -> AgentCard:
    card = attempt_now(lambda: cards.extended(PARENT))
    if isinstance(card, Raised):
        raise UsageError(f"--extended: the agent's function failed ({type(card.exc).__name__})") from card.exc
    if card is None:
        raise UsageError("--extended: no extended card without tokens, an identity provider, or an agent that has one")
    return card
