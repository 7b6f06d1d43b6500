"""The agent card in both versions: its JSON, validated by schemas of our own and by the SDK's types; and how it is built."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator

from discreet import Identity, Service
from discreet.daemon.agents.agent import Agent
from discreet.daemon.agents.card.model import (
    AgentCard,
    AgentInterface,
    ApiKey,
    AuthorizationCode,
    Capabilities,
    ClientCredentials,
    DeviceCode,
    Extension,
    HttpAuth,
    Implicit,
    MutualTls,
    OAuth2,
    OAuthFlows,
    OpenIdConnect,
    Password,
    Provider,
    Scheme,
    SecurityScheme,
    Signature,
    Skill,
    requires,
    validate_card,
    wrap_scheme,
)
from discreet.daemon.agents.card.v03 import card_to_v03
from discreet.daemon.agents.service.card_builder import BINDING, CardBuilder, stdio_interfaces
from discreet.daemon.operations.access import PARENT, Access, StaticTokens
from discreet.daemon.settings import Settings

HERE = Path(__file__).parent
STDIO = stdio_interfaces(Settings())
SCOPES = {"files:read": "Read files", "files:write": ""}
URL = "https://example.com/a"

FLOWS: dict[str, OAuthFlows] = {
    "code": OAuthFlows(
        authorization_code=AuthorizationCode(
            authorization_url=URL, token_url=URL, scopes=SCOPES, refresh_url=URL, pkce_required=True
        )
    ),
    "client": OAuthFlows(client_credentials=ClientCredentials(token_url=URL, scopes={})),
    "implicit": OAuthFlows(implicit=Implicit(authorization_url=URL, scopes=SCOPES)),
    "password": OAuthFlows(password=Password(token_url=URL, scopes=SCOPES)),
    "device": OAuthFlows(device_code=DeviceCode(device_authorization_url=URL, token_url=URL, scopes=SCOPES)),
}
SCHEMES: dict[str, Scheme] = {
    "key": ApiKey(name="X-Key", location="header", description="A key."),
    "bearer": HttpAuth("Bearer", bearer_format="JWT"),
    "oidc": OpenIdConnect(URL),
    "mtls": MutualTls(),
    **{f"oauth-{name}": OAuth2(flow, oauth2_metadata_url=URL) for name, flow in FLOWS.items()},
}


class Executor:
    """Does nothing."""

    async def execute(self, context: object, events: object) -> None: ...

    async def cancel(self, context: object, events: object) -> None: ...


def whole_agent(**more: Any) -> Agent:
    """An agent that says everything that can be said."""
    options: dict[str, Any] = {
        "name": "Whole",
        "description": "Says everything.",
        "version": "1.2.3",
        "skills": [
            Skill(
                id="paint",
                name="Paint",
                description="Paints pictures.",
                tags=("art", "colour"),
                examples=("a cat",),
                input_modes=("text/plain", "application/json"),
                output_modes=("image/png",),
                security_requirements=(requires({"bearer": [], "oauth-code": ["files:write"]}),),
            ),
            Skill(id="rest", name="Rest", description="Rests.", tags=()),
        ],
        "provider": Provider(organization="Example", url=URL),
        "documentation_url": URL,
        "icon_url": URL,
        "input_modes": ["text/plain"],
        "output_modes": ["text/plain", "image/png"],
        "extensions": [Extension(URL, "An extension.", required=True, params={"a": [1]}), Extension(URL + "/2")],
        "security_schemes": SCHEMES,
        "security": [requires({"bearer": []}), requires({"key": [], "oauth-client": ["a", "b"]})],
        "signatures": [Signature(protected="e30", signature="c2ln", header={"kid": "1"})],
        "extended": lambda card, identity: card,
        "streaming": True,
        "push_notifications": False,
    }
    return Agent(Executor(), **{**options, **more})


def plain_agent(**more: Any) -> Agent:
    return Agent(Executor(), **{"name": "Plain", "description": "Says little.", **more})


def shop() -> Service:
    service = Service("shop", description="Sells things.")

    @service.query()
    def look() -> str:
        """Look around.

        At everything.
        """
        return ""

    @service.mutation(scopes=["buy"])
    def buy(what: str) -> None:
        """Buy something."""

    @service.query(scopes=["see"], any_scope=["b", "a"])
    def ledger() -> None: ...

    @service.query(visibility="internal")
    def price() -> int:
        """Tell a price."""
        return 1

    return service


def cards(*services: Service, agent: Agent | None = None, access: Access | None = None, **more: Any) -> CardBuilder:
    return CardBuilder(services, agent, access or Access(PARENT), version="9.8.7", **{"interfaces": STDIO, **more})


def tokens() -> Access:
    return Access(PARENT, StaticTokens([]))


CARDS: dict[str, AgentCard] = {
    "operations": cards(shop()).public(),
    "operations with tokens": cards(shop(), access=tokens()).public(),
    "nothing": cards().public(),
    "plain agent": cards(agent=plain_agent()).public(),
    "plain agent with tokens": cards(agent=plain_agent(), access=tokens()).public(),
    "whole agent": cards(agent=whole_agent()).public(),
    "another way in": cards(
        agent=whole_agent(),
        interfaces=[AgentInterface(url=URL, protocol_binding="JSONRPC", protocol_version="1.0", tenant="t"), *STDIO],
    ).public(),
}
every_card = pytest.mark.parametrize("name", CARDS)


def written(card: object) -> Any:
    return json.loads(msgspec.json.encode(card))


# -- the JSON --------------------------------------------------------------------------------------------------


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
card = Parse(sys.stdin.read(), AgentCard())
print(json.dumps(MessageToDict(card)))
""",
    "DISCREET_A2A_V03": """
import sys
from a2a.types import AgentCard
card = AgentCard.model_validate_json(sys.stdin.read())
print(card.model_dump_json(by_alias=True, exclude_unset=True))
""",
}
"""Programs for an interpreter with the SDK of that version: they read a card and print what they understood."""


@every_card
@pytest.mark.parametrize("variable", PARSERS)
def test_the_sdk_reads_every_member(name: str, variable: str) -> None:
    interpreter = os.environ.get(variable)
    if not interpreter:
        pytest.skip(f"{variable} names no interpreter with a2a-sdk")
    card = CARDS[name] if variable == "DISCREET_A2A_V1" else card_to_v03(CARDS[name])
    done = subprocess.run(
        [interpreter, "-c", PARSERS[variable]],
        input=msgspec.json.encode(card).decode(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert without_empty_lists(json.loads(done.stdout)) == without_empty_lists(written(card))


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


# -- interfaces ------------------------------------------------------------------------------------------------


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
    assert (card.protocol_version, card.url, card.preferred_transport) == ("0.3.0", URL, "JSONRPC")
    assert [each.transport for each in card.additional_interfaces] == ["JSONRPC", BINDING]


def test_a_card_without_0_3_interfaces_keeps_its_own_in_0_3() -> None:
    card = msgspec.structs.replace(CARDS["nothing"], supported_interfaces=STDIO[:1])
    assert card_to_v03(card).url == STDIO[0].url
    with pytest.raises(ValueError, match="interface"):
        card_to_v03(msgspec.structs.replace(card, supported_interfaces=()))


# -- from operations -------------------------------------------------------------------------------------------


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
    assert card.capabilities == Capabilities(streaming=True, push_notifications=True, extended_agent_card=False)
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


# -- from an agent ---------------------------------------------------------------------------------------------


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
    with pytest.raises(TypeError):
        cards(agent=plain_agent(extended=lambda card, identity: wrong)).extended(PARENT)


def test_a_card_of_the_wrong_types_is_a_fault_of_the_agent() -> None:
    with pytest.raises(msgspec.ValidationError):
        cards(agent=plain_agent(extended=lambda card, identity: msgspec.structs.replace(card, skills=3))).extended(
            PARENT
        )


# -- the structs -----------------------------------------------------------------------------------------------


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


# -- declarations ----------------------------------------------------------------------------------------------


def test_lists_and_tuples_are_as_good_and_the_defaults_are_text() -> None:
    skill = Skill(id="a", name="A", description="A.", tags=["x"])  # type: ignore[arg-type]
    agent = plain_agent(skills=[skill])
    assert agent.card.skills[0].tags == ("x",)
    assert agent.card.default_input_modes == agent.card.default_output_modes == ("text/plain",)
    assert (agent.card.version, agent.interceptors, agent.extended) == ("0.0.0", (), None)
