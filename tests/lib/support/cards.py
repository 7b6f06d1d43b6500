"""Agent cards of every kind: of operations, of an agent that says little, and of one that says everything."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from discreet import Service
from discreet.a2a.card import (
    AgentCard,
    AgentInterface,
    ApiKey,
    AuthorizationCode,
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
    Signature,
    Skill,
    requires,
)
from discreet.agents.agent import Agent
from discreet.agents.card_builder import CardBuilder, stdio_interfaces
from discreet.daemon.operations.access import PARENT, Access, StaticTokens
from discreet.daemon.settings import Settings

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


def written(card: object) -> Any:
    return json.loads(msgspec.json.encode(card))
