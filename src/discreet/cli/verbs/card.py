"""`discreet card`: prints the agent card of what would be served."""

import argparse
from collections.abc import Callable
from typing import Final

import msgspec

from ... import __version__
from ...daemon.agents.card.model import AgentCard
from ...daemon.agents.card.v03 import card_to_v03
from ...daemon.agents.push.notifier import is_push_available
from ...daemon.agents.service.card_builder import VERSIONS, CardBuilder, stdio_interfaces
from ...daemon.apps import AppError, hosted_of
from ...daemon.credentials import access_of
from ...daemon.dispatch.execution import Raised, attempt_now
from ...daemon.lifecycle import EXIT_OK
from ...daemon.operations.access import PARENT
from ...daemon.operations.registry import Registry
from ...daemon.operations.service import DeclarationError
from ...daemon.settings import Settings, UsageError
from ...daemon.settings.flags import add_setting_flags
from ..json_output import show
from .schema import stdout_is_stderr
from .serve import resolved

_WRITERS: Final[dict[str, Callable[[AgentCard], object]]] = dict(
    zip(VERSIONS, (lambda card: card, card_to_v03), strict=True)
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of `serve`, whose agent is meant, and which of its cards."""
    parser.add_argument("--dialect", choices=VERSIONS, default=VERSIONS[0], help="the version of A2A to write it in")
    parser.add_argument("--extended", action="store_true", help="the card that a caller with every scope gets")
    add_setting_flags(parser)


def run(args: argparse.Namespace) -> int:
    """Print the card. Raises `UsageError` for apps that can't be hosted, and for an extended card that there is not.

    The apps are imported. What they print then goes to stderr.
    """
    settings = resolved(args).settings
    with stdout_is_stderr():
        card = _card(settings, extended=args.extended)
    show(msgspec.Raw(msgspec.json.encode(_WRITERS[args.dialect](card))), line=False)
    return EXIT_OK


def _card(settings: Settings, *, extended: bool) -> AgentCard:
    try:
        hosted = hosted_of(settings)
        Registry(hosted.services)
        access = access_of(settings)
    except (AppError, DeclarationError) as exc:
        raise UsageError(str(exc)) from exc
    interfaces = stdio_interfaces(settings)
    cards = CardBuilder(
        hosted.services, hosted.agent, access, version=__version__, interfaces=interfaces, pushes=is_push_available()
    )
    return _extended(cards) if extended else cards.public()


def _extended(cards: CardBuilder) -> AgentCard:
    card = attempt_now(lambda: cards.extended(PARENT))
    if isinstance(card, Raised):
        raise UsageError(f"--extended: the agent's function failed ({type(card.exc).__name__})") from card.exc
    if card is None:
        raise UsageError(
            "--extended: there is no such card without tokens, an identity provider, or an agent that has one"
        )
    return card
