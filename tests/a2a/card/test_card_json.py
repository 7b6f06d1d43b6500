"""The JSON of agent cards in both versions, validated by schemas of our own and by the SDK's types."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator

from discreet.a2a.card import (
    AgentCard,
    ClientCredentials,
    HttpAuth,
    MutualTls,
    OAuthFlows,
    Password,
    SecurityScheme,
    validate_card,
    wrap_scheme,
)
from discreet.a2a.card_v03 import card_to_v03
from support.cards import CARDS, FLOWS, SCHEMES, URL, cards, plain_agent, written

HERE = Path(__file__).parent


every_card = pytest.mark.parametrize("name", CARDS)


@every_card
@pytest.mark.parametrize("version", ["v1", "v03"])
def test_every_card_matches_the_schema_of_its_version(name: str, version: str) -> None:
    schema = json.loads((HERE / f"card_{version}.schema.json").read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    card = CARDS[name] if version == "v1" else card_to_v03(CARDS[name])
    faults = [
        f"{fault.json_path}: {fault.message}" for fault in Draft202012Validator(schema).iter_errors(written(card))
    ]
    assert faults == []


@every_card
def test_a_card_is_decoded_as_it_was_encoded(name: str) -> None:
    card = CARDS[name]
    assert msgspec.json.decode(msgspec.json.encode(card), type=AgentCard) == card


PARSERS = {
    "DISCREET_A2A_V1": """
import json, sys
from a2a.types import AgentCard
from google.protobuf.json_format import MessageToDict, Parse
for line in sys.stdin:
    print(json.dumps(MessageToDict(Parse(line, AgentCard()))))
""",
    "DISCREET_A2A_V03": """
import sys
from a2a.types import AgentCard
for line in sys.stdin:
    print(AgentCard.model_validate_json(line).model_dump_json(by_alias=True, exclude_unset=True))
""",
}
"""Programs for an interpreter with the SDK of that version: they read cards, a line each, and print what they understood."""


@pytest.mark.parametrize("variable", PARSERS)
def test_the_sdk_reads_every_member(variable: str) -> None:
    interpreter = os.environ.get(variable)
    if not interpreter:
        pytest.skip(f"{variable} names no interpreter with a2a-sdk")
    all_cards = [card if variable == "DISCREET_A2A_V1" else card_to_v03(card) for card in CARDS.values()]
    done = subprocess.run(
        [interpreter, "-P", "-c", PARSERS[variable]],
        input="\n".join(msgspec.json.encode(card).decode() for card in all_cards),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for name, card, line in zip(CARDS, all_cards, done.stdout.splitlines(), strict=True):
        assert without_empty_lists(json.loads(line)) == without_empty_lists(written(card)), name


def without_empty_lists(value: Any) -> Any:
    """Protobuf can't tell a required list or map that is empty from one that is missing."""
    match value:
        case dict():
            required = ("skills", "tags", "scopes")
            return {key: without_empty_lists(each) for key, each in value.items() if each or key not in required}
        case list():
            return [without_empty_lists(each) for each in value]
        case _:
            return value


def test_required_members_are_written_also_when_empty_and_set_ones_also_when_false() -> None:
    card = written(cards(agent=plain_agent(input_modes=[], streaming=False)).public())
    assert card["defaultInputModes"] == card["skills"] == []
    assert card["capabilities"]["streaming"] is False
    assert card.keys().isdisjoint({"provider", "securitySchemes", "securityRequirements", "signatures", "iconUrl"})


def test_a_scheme_is_written_under_the_name_of_its_kind() -> None:
    assert {name: list(written(wrap_scheme(scheme))) for name, scheme in SCHEMES.items()} == {
        "key": ["apiKeySecurityScheme"],
        "bearer": ["httpAuthSecurityScheme"],
        "oidc": ["openIdConnectSecurityScheme"],
        "mtls": ["mtlsSecurityScheme"],
        **{f"oauth-{name}": ["oauth2SecurityScheme"] for name in FLOWS},
    }
    assert all(wrap_scheme(scheme).scheme == scheme for scheme in SCHEMES.values())


@pytest.mark.parametrize(
    "make",
    [
        SecurityScheme,
        lambda: SecurityScheme(mtls_security_scheme=MutualTls(), http_auth_security_scheme=HttpAuth("Basic")),
        OAuthFlows,
        lambda: OAuthFlows(
            client_credentials=ClientCredentials(token_url=URL, scopes={}), password=Password(token_url=URL, scopes={})
        ),
    ],
)
def test_none_or_several_alternatives_are_refused(make: Any) -> None:
    with pytest.raises(ValueError, match="exactly one"):
        make()


@pytest.mark.parametrize("field", ["supportedInterfaces", "capabilities", "skills", "version", "defaultInputModes"])
def test_a_card_without_a_required_field_is_refused(field: str) -> None:
    text = {key: value for key, value in written(CARDS["nothing"]).items() if key != field}
    with pytest.raises(msgspec.ValidationError, match=field):
        msgspec.convert(text, AgentCard)


def test_validating_a_card_converts_its_lists() -> None:
    loose: Any = msgspec.structs.replace(CARDS["nothing"], skills=[])
    assert validate_card(loose).skills == ()
