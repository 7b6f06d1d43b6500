"""`discreet card`: prints the agent card that a daemon with the same settings would serve."""

import argparse
from collections.abc import Callable
from typing import Final

import msgspec

from ...daemon.agents.card.model import AgentCard
from ...daemon.agents.card.v03 import card_to_v03
from ...daemon.agents.service.card_builder import VERSIONS
from ...daemon.lifecycle import EXIT_OK
from ...daemon.settings.flags import add_setting_flags
from ..agent_card import build_card
from ..json_output import print_json
from ..output import require_stdout
from .serve import resolved

_CARD_FORMATS: Final[dict[str, Callable[[AgentCard], object]]] = dict(
    zip(VERSIONS, (lambda card: card, card_to_v03), strict=True)
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of `serve`, whose agent is meant, and which card to print."""
    parser.add_argument(
        "--a2a-version", choices=VERSIONS, default=VERSIONS[0], help="the version of A2A to write it in"
    )
    parser.add_argument("--extended", action="store_true", help="the card that a caller with every scope gets")
    add_setting_flags(parser)


def run(args: argparse.Namespace) -> int:
    """Print the card. Raises `UsageError` for apps that can't be hosted, and if there is no extended card.

    Imports the apps. What they print goes to stderr.
    """
    require_stdout()
    card = build_card(resolved(args).settings, extended=args.extended)
    print_json(msgspec.Raw(msgspec.json.encode(_CARD_FORMATS[args.a2a_version](card))), one_line=False)
    return EXIT_OK
