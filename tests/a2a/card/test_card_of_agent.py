"""The card of an agent: what it declares, and what the daemon adds."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from discreet import Identity
from discreet.a2a.card import AgentCard, Signature, Skill, requires
from discreet.agents.card_builder import InvalidCard
from discreet.daemon.operations.access import PARENT
from support.cards import STDIO, cards, plain_agent, shop, tokens, whole_agent


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
