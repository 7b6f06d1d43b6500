"""`discreet card`: prints the agent card that a daemon with the same settings would serve, or the MCP registry's document."""

import argparse
from collections.abc import Callable
from typing import Final

import msgspec

from ...a2a.card import AgentCard
from ...a2a.card_v03 import card_to_v03
from ...agents.agent import Agent
from ...agents.card_builder import VERSIONS, CardBuilder, stdio_interfaces
from ...agents.host import card_signer, card_signing
from ...agents.notifier import is_push_available
from ...daemon.apps import hosted_of
from ...daemon.dispatch.execution import Raised, attempt_now
from ...daemon.hosting import access_of
from ...daemon.lifecycle import EXIT_OK
from ...daemon.operations.access import PARENT
from ...daemon.operations.registry import Registry
from ...daemon.settings import Settings, UsageError
from ...version import __version__
from ..app_import import importing_apps
from ..output import print_json, require_stdout
from ..server_json import server_json
from .serve import resolved

_CARD_FORMATS: Final[dict[str, Callable[[AgentCard], object]]] = dict(
    zip(VERSIONS, (lambda card: card, card_to_v03), strict=True)
)


def run(args: argparse.Namespace) -> int:
    """Print the card or the document. Raises `UsageError` for apps that can't be hosted, if there is no extended card, and for
    what the registry refuses.

    Imports the apps. What they print goes to stderr.
    """
    require_stdout()
    settings = resolved(args).settings
    if args.package and not args.registry:
        raise UsageError("--package is for --registry")
    if args.public_keys and settings.card_key is None:
        raise UsageError("--public-keys needs --card-key")
    document: object
    if args.public_keys:
        assert settings.card_key is not None
        document = msgspec.Raw(card_signer(settings.card_key).public_keys)
        print_json(document, one_line=False)
        return EXIT_OK
    if args.registry:
        with importing_apps():
            services = hosted_of(settings).services
        document = server_json(services, args.registry, args.package, settings.http_url or "")
    else:
        document = _CARD_FORMATS[args.a2a_version](_build_card(settings, extended=args.extended))
    print_json(msgspec.Raw(msgspec.json.encode(document)), one_line=False)
    return EXIT_OK


def _build_card(settings: Settings, *, extended: bool) -> AgentCard:
    """Return the public card, or the extended one as a caller with every scope gets it.

    Imports the apps. Raises `UsageError` for apps that can't be hosted, and if there is no extended card.
    """
    with importing_apps():
        hosted = hosted_of(settings)
        Registry(hosted.services)  # checks that the services can be hosted together
        cards = CardBuilder(
            hosted.services,
            hosted.agent if isinstance(hosted.agent, Agent) else None,
            access_of(settings),
            version=__version__,
            interfaces=stdio_interfaces(settings),
            pushes=is_push_available(),
            sign=card_signing(settings.card_key),
        )
        return _extended(cards) if extended else cards.public()


def _extended(cards: CardBuilder) -> AgentCard:
    card = attempt_now(lambda: cards.extended(PARENT))
    if isinstance(card, Raised):
        raise UsageError(f"--extended: the agent's function failed ({type(card.exc).__name__})") from card.exc
    if card is None:
        raise UsageError("--extended: no extended card without tokens, an identity provider, or an agent that has one")
    return card
