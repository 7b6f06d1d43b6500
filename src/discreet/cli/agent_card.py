"""Builds the agent card that a daemon with the same settings would serve. Prints nothing, and serves nothing."""

from .. import __version__
from ..daemon.agents.card.model import AgentCard
from ..daemon.agents.push.notifier import available
from ..daemon.agents.service.card_builder import CardBuilder, stdio_interfaces
from ..daemon.apps import hosted_of
from ..daemon.credentials import access_of
from ..daemon.dispatch.execution import attempt_now
from ..daemon.operations.access import PARENT
from ..daemon.operations.registry import Registry
from ..daemon.settings import Settings, UsageError
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
            pushes=available(),
        )
        return _extended(cards) if extended else cards.public()


def _extended(cards: CardBuilder) -> AgentCard:
    built: list[AgentCard | None] = []
    fault = attempt_now(lambda: built.append(cards.extended(PARENT)))
    if fault is not None:
        raise UsageError(f"--extended: the agent's function failed ({type(fault).__name__})") from fault
    card = built[0]
    if card is None:
        raise UsageError("--extended: no extended card without tokens, an identity provider, or an agent that has one")
    return card
