"""The card of an agent and that made of operations: what it declares, what the daemon adds, for whom, and with which interfaces."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from discreet import Identity, Service
from discreet.a2a.card import AgentCard, AgentInterface, Capabilities, HttpAuth, Signature, Skill, requires
from discreet.a2a.card_v03 import card_to_v03
from discreet.agents.card_builder import BINDING, PUSH_DELIVERY, InvalidCard, stdio_interfaces
from discreet.daemon.operations.access import PARENT, Access
from discreet.daemon.settings import Settings
from support.cards import CARDS, STDIO, URL, cards, plain_agent, shop, tokens, whole_agent, written


def test_an_agents_card_is_what_it_declared_with_the_daemons_interfaces() -> None:
    agent = whole_agent()
    card = cards(shop(), agent=agent).public()
    assert msgspec.structs.replace(card, supported_interfaces=()) == agent.card
    assert card.supported_interfaces == STDIO
    assert [skill.id for skill in card.skills] == ["paint", "rest"]
    assert card.capabilities.extended_agent_card is True
    assert card.signatures == (Signature(protected="e30", signature="c2ln", header={"kid": "1"}),)


def test_an_agent_that_names_no_schemes_gets_the_daemons() -> None:
    card = cards(agent=plain_agent(), access=tokens()).public()
    assert list(card.security_schemes) == ["bearer"]
    assert card.security_requirements == (requires({"bearer": []}),)
    own = cards(agent=whole_agent(), access=tokens()).public()
    assert own.security_requirements == whole_agent().card.security_requirements


def test_an_agent_without_an_extended_card_has_none_whatever_the_daemon_demands() -> None:
    made = cards(agent=plain_agent(), access=tokens())
    assert (made.has_extended, made.extended(PARENT)) == (False, None)
    assert made.public().capabilities.extended_agent_card is False


def test_an_extended_card_may_be_a_card_which_gets_the_daemons_interfaces() -> None:
    other = msgspec.structs.replace(plain_agent().card, name="Extended")
    made = cards(agent=plain_agent(extended=other))
    assert made.has_extended
    assert made.extended(PARENT) == msgspec.structs.replace(other, supported_interfaces=STDIO)
    reachable = msgspec.structs.replace(other, supported_interfaces=STDIO[:1])
    assert cards(agent=plain_agent(extended=reachable)).extended(PARENT) == reachable


def test_an_extended_card_may_be_made_of_the_public_one_for_each_caller() -> None:
    def extend(card: AgentCard, identity: Identity) -> AgentCard:
        assert card.signatures == ()  # they were made over another card
        return msgspec.structs.replace(card, description=identity.subject)

    card = cards(agent=whole_agent(extended=extend)).extended(Identity("me"))
    assert card is not None
    assert (card.description, card.supported_interfaces, card.signatures) == ("me", STDIO, ())


@pytest.mark.parametrize("wrong", [None, {"name": "x"}, 3])
def test_a_function_that_gives_no_card_is_a_fault_of_the_agent(wrong: Any) -> None:
    with pytest.raises(InvalidCard):
        cards(agent=plain_agent(extended=lambda card, identity: wrong)).extended(PARENT)


def test_a_card_of_the_wrong_types_is_a_fault_of_the_agent() -> None:
    with pytest.raises(InvalidCard):
        cards(agent=plain_agent(extended=lambda card, identity: msgspec.structs.replace(card, skills=3))).extended(
            PARENT
        )


def test_lists_and_tuples_are_as_good_and_the_defaults_are_text() -> None:
    skill = Skill(id="a", name="A", description="A.", tags=["x"])  # type: ignore[arg-type]
    agent = plain_agent(skills=[skill])
    assert agent.card.skills[0].tags == ("x",)
    assert agent.card.default_input_modes == agent.card.default_output_modes == ("text/plain",)
    assert (agent.card.version, agent.interceptors, agent.extended) == ("0.0.0", (), None)


def test_every_external_operation_that_the_caller_may_call_is_a_skill() -> None:
    card = cards(shop()).public()
    assert [(skill.id, skill.name, skill.description, skill.tags) for skill in card.skills] == [
        ("shop/look", "shop/look", "Look around.", ("shop", "query")),
        ("shop/buy", "shop/buy", "Buy something.", ("shop", "mutation")),
        ("shop/ledger", "shop/ledger", "Runs shop/ledger.", ("shop", "query")),
    ]
    assert card.default_input_modes == card.default_output_modes == ("application/json",)
    assert (card.name, card.version) == ("shop", "9.8.7")
    assert card.description.startswith("Sells things. ")
    assert card.capabilities == Capabilities(
        streaming=True, push_notifications=True, extensions=(PUSH_DELIVERY,), extended_agent_card=False
    )
    assert not (card.security_schemes or card.security_requirements)


def test_a_parent_with_few_scopes_sees_what_it_may_call() -> None:
    made = cards(shop(), access=Access(Identity("parent", frozenset({"buy"}))))
    assert [skill.id for skill in made.public().skills] == ["shop/look", "shop/buy"]
    assert made.extended(PARENT) is None


def test_with_tokens_the_public_card_lists_open_skills_and_the_extended_one_the_rest() -> None:
    made = cards(shop(), access=tokens())
    public = made.public()
    assert [skill.id for skill in public.skills] == ["shop/look"]
    assert public.capabilities.extended_agent_card is made.has_extended is True
    seen = {
        scopes: [skill.id for skill in card.skills]
        for scopes in ("", "buy", "see a", "buy see b")
        if (card := made.extended(Identity("me", frozenset(scopes.split())))) is not None
    }
    assert seen == {
        "": ["shop/look"],
        "buy": ["shop/look", "shop/buy"],
        "see a": ["shop/look", "shop/ledger"],
        "buy see b": ["shop/look", "shop/buy", "shop/ledger"],
    }


def test_with_tokens_the_card_says_how_to_show_one_and_which_scopes_a_skill_needs() -> None:
    card = cards(shop(), access=tokens()).extended(PARENT)
    assert card is not None
    scheme = card.security_schemes["bearer"].scheme
    assert isinstance(scheme, HttpAuth) and scheme.scheme == "bearer"
    assert card.security_requirements == (requires({"bearer": []}), requires({}))
    assert {skill.id: skill.security_requirements for skill in card.skills} == {
        "shop/look": (),
        "shop/buy": (requires({"bearer": ["buy"]}),),
        "shop/ledger": (requires({"bearer": ["see", "a"]}), requires({"bearer": ["see", "b"]})),
    }
    old = written(card_to_v03(card))
    assert old["security"] == [{"bearer": []}, {}]
    assert old["skills"][1]["security"] == [{"bearer": ["buy"]}]
    assert old["supportsAuthenticatedExtendedCard"] is True


def test_without_open_operations_credentials_are_required() -> None:
    service = Service("closed")
    service.query(name="door", scopes=["a"], any_scope=["a", "b"])(lambda: None)
    card = cards(service, access=tokens()).extended(PARENT)
    assert card is not None
    assert card.security_requirements == (requires({"bearer": []}),)
    assert card.skills[0].security_requirements == (requires({"bearer": ["a"]}),)  # `b` would add nothing


def test_several_services_are_one_agent_under_the_daemons_name() -> None:
    bare = Service("")
    bare.query(name="ping")(lambda: None)
    card = cards(shop(), bare, Service("other", description="Does more.")).public()
    assert card.name == "discreet"
    assert card.description.startswith("Sells things. Does more. ")
    assert card.skills[-1].tags == ("query",)


def test_without_pushes_no_card_promises_any() -> None:
    for agent in (None, plain_agent(), plain_agent(push_notifications=False)):
        assert cards(agent=agent, pushes=False).public().capabilities.push_notifications is False


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
