"""Converts a 1.0 agent card to the JSON of A2A 0.3. Adds nothing of its own.

Leaves out what 0.3 can't express: tenants, `pkceRequired`, the device code flow. Leaves out signatures too: they were made
over the JSON of 1.0 and are not valid for this one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, TypeAlias, assert_never

import msgspec

from ..types import WireStruct
from .model import (
    AgentCard,
    AgentInterface,
    ApiKey,
    AuthorizationCode,
    Capabilities,
    ClientCredentials,
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
    SecurityRequirement,
    Skill,
)

PROTOCOL_VERSION: Final = "0.3.0"

SecurityRequirement03: TypeAlias = dict[str, tuple[str, ...]]
"""Scopes by scheme name."""


class Interface03(WireStruct, frozen=True):
    url: str
    transport: str


class Capabilities03(WireStruct, frozen=True):
    streaming: bool | None = None
    push_notifications: bool | None = None
    extensions: tuple[Extension, ...] = ()


class Skill03(WireStruct, frozen=True):
    id: str
    name: str
    description: str
    tags: tuple[str, ...]
    examples: tuple[str, ...] = ()
    input_modes: tuple[str, ...] = ()
    output_modes: tuple[str, ...] = ()
    security: tuple[SecurityRequirement03, ...] = ()


class ApiKey03(WireStruct, frozen=True, tag_field="type", tag="apiKey"):
    name: str
    location: Literal["query", "header", "cookie"] = msgspec.field(name="in")
    description: str | None = None


class HttpAuth03(WireStruct, frozen=True, tag_field="type", tag="http"):
    scheme: str
    description: str | None = None
    bearer_format: str | None = None


class AuthorizationCode03(WireStruct, frozen=True):
    authorization_url: str
    token_url: str
    scopes: dict[str, str]
    refresh_url: str | None = None


class Flows03(WireStruct, frozen=True):
    authorization_code: AuthorizationCode03 | None = None
    client_credentials: ClientCredentials | None = None
    implicit: Implicit | None = None
    password: Password | None = None


class OAuth203(WireStruct, frozen=True, tag_field="type", tag="oauth2"):
    flows: Flows03
    description: str | None = None
    oauth2_metadata_url: str | None = None


class OpenIdConnect03(WireStruct, frozen=True, tag_field="type", tag="openIdConnect"):
    open_id_connect_url: str
    description: str | None = None


class MutualTls03(WireStruct, frozen=True, tag_field="type", tag="mutualTLS"):
    description: str | None = None


Scheme03: TypeAlias = ApiKey03 | HttpAuth03 | OAuth203 | OpenIdConnect03 | MutualTls03


class AgentCard03(WireStruct, frozen=True, kw_only=True):
    """The card. `url` and `preferred_transport` repeat the first of `additional_interfaces`."""

    protocol_version: str
    name: str
    description: str
    url: str
    preferred_transport: str
    additional_interfaces: tuple[Interface03, ...]
    version: str
    capabilities: Capabilities03
    default_input_modes: tuple[str, ...]
    default_output_modes: tuple[str, ...]
    skills: tuple[Skill03, ...]
    provider: Provider | None = None
    documentation_url: str | None = None
    icon_url: str | None = None
    security_schemes: dict[str, Scheme03] = msgspec.field(default_factory=dict)
    security: tuple[SecurityRequirement03, ...] = ()
    supports_authenticated_extended_card: bool | None = None


def card_to_v03(card: AgentCard) -> AgentCard03:
    """The card for clients of 0.3, with the interfaces of that version, or with all of them if there is none.

    Raises `ValueError` for a card without interfaces.
    """
    if not card.supported_interfaces:
        raise ValueError("a card needs at least one interface")
    supported = [interface for interface in card.supported_interfaces if interface.protocol_version.startswith("0.")]
    interfaces = _interfaces(supported or card.supported_interfaces)
    return AgentCard03(
        protocol_version=PROTOCOL_VERSION,
        name=card.name,
        description=card.description,
        url=interfaces[0].url,
        preferred_transport=interfaces[0].transport,
        additional_interfaces=interfaces,
        version=card.version,
        capabilities=_capabilities(card.capabilities),
        default_input_modes=card.default_input_modes,
        default_output_modes=card.default_output_modes,
        skills=tuple(map(_skill, card.skills)),
        provider=card.provider,
        documentation_url=card.documentation_url,
        icon_url=card.icon_url,
        security_schemes={name: scheme_to_v03(wrapped.scheme) for name, wrapped in card.security_schemes.items()},
        security=_security(card.security_requirements),
        supports_authenticated_extended_card=card.capabilities.extended_agent_card,
    )


def _interfaces(interfaces: Iterable[AgentInterface]) -> tuple[Interface03, ...]:
    return tuple(Interface03(interface.url, interface.protocol_binding) for interface in interfaces)


def _capabilities(capabilities: Capabilities) -> Capabilities03:
    return Capabilities03(capabilities.streaming, capabilities.push_notifications, capabilities.extensions)


def _skill(skill: Skill) -> Skill03:
    return Skill03(
        id=skill.id,
        name=skill.name,
        description=skill.description,
        tags=skill.tags,
        examples=skill.examples,
        input_modes=skill.input_modes,
        output_modes=skill.output_modes,
        security=_security(skill.security_requirements),
    )


def _security(requirements: Iterable[SecurityRequirement]) -> tuple[SecurityRequirement03, ...]:
    return tuple({name: scopes.list for name, scopes in each.schemes.items()} for each in requirements)


def scheme_to_v03(scheme: Scheme) -> Scheme03:
    """A security scheme for clients of 0.3, which has those of OpenAPI."""
    match scheme:
        case ApiKey():
            return ApiKey03(scheme.name, scheme.location, scheme.description)
        case HttpAuth():
            return HttpAuth03(scheme.scheme, scheme.description, scheme.bearer_format)
        case OAuth2():
            return OAuth203(_flows(scheme.flows), scheme.description, scheme.oauth2_metadata_url)
        case OpenIdConnect():
            return OpenIdConnect03(scheme.open_id_connect_url, scheme.description)
        case MutualTls():
            return MutualTls03(scheme.description)
        case _:
            assert_never(scheme)


def _flows(flows: OAuthFlows) -> Flows03:
    return Flows03(
        None if flows.authorization_code is None else _authorization_code(flows.authorization_code),
        flows.client_credentials,
        flows.implicit,
        flows.password,
    )


def _authorization_code(flow: AuthorizationCode) -> AuthorizationCode03:
    return AuthorizationCode03(flow.authorization_url, flow.token_url, flow.scopes, flow.refresh_url)
