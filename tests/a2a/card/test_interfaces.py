"""The interfaces of a card: one for each version, whose URL names the command."""

from __future__ import annotations

import msgspec
import pytest

from discreet.a2a.card import AgentInterface
from discreet.a2a.card_v03 import card_to_v03
from discreet.agents.card_builder import BINDING, stdio_interfaces
from discreet.daemon.settings import Settings
from support.cards import CARDS, STDIO, URL, cards


def test_a_card_has_one_interface_per_version_the_newest_first() -> None:
    assert [(each.protocol_binding, each.protocol_version) for each in STDIO] == [(BINDING, "1.0"), (BINDING, "0.3")]


@pytest.mark.parametrize(
    ("settings", "url"),
    [
        (Settings(), "stdio:discreet%20serve"),
        (Settings(apps=("app:agent",)), "stdio:discreet%20serve%20app:agent"),
        (Settings(apps=("/secret/app.py:agent",)), "stdio:discreet%20serve%20./app.py:agent"),
        (Settings(apps=("a:b", "c:d"), framing="newline"), "stdio:discreet%20serve%20a:b%20c:d%20--framing=newline"),
        (Settings(apps=("it's:ö",)), "stdio:discreet%20serve%20%27it%27%22%27%22%27s:%C3%B6%27"),
        (Settings(root="/secret", tokens=("me:" + "0" * 64,), identity="a:b"), "stdio:discreet%20serve"),
    ],
)
def test_the_url_holds_the_command_and_no_other_setting(settings: Settings, url: str) -> None:
    assert {interface.url for interface in stdio_interfaces(settings)} == {url}


def test_the_0_3_card_names_the_0_3_interfaces() -> None:
    http = [AgentInterface(url=URL, protocol_binding="JSONRPC", protocol_version=version) for version in ("1.0", "0.3")]
    card = card_to_v03(cards(interfaces=[*http, *STDIO]).public())
    assert (card["protocolVersion"], card["url"], card["preferredTransport"]) == ("0.3.0", URL, "JSONRPC")
    assert [each["transport"] for each in card["additionalInterfaces"]] == ["JSONRPC", BINDING]


def test_a_card_without_0_3_interfaces_keeps_its_own_in_0_3() -> None:
    card = msgspec.structs.replace(CARDS["nothing"], supported_interfaces=STDIO[:1])
    assert card_to_v03(card)["url"] == STDIO[0].url
    with pytest.raises(ValueError, match="interface"):
        card_to_v03(msgspec.structs.replace(card, supported_interfaces=()))
