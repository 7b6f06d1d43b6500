"""The card that is made from operations: which of them are skills, for whom, and with which credentials."""

from __future__ import annotations

from discreet import Identity, Service
from discreet.a2a.card import Capabilities, HttpAuth, requires
from discreet.a2a.card_v03 import card_to_v03
from discreet.agents.card_builder import PUSH_DELIVERY
from discreet.daemon.operations.access import PARENT, Access
from support.cards import cards, plain_agent, shop, tokens, written


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
