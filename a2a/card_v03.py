"""Converts a 1.0 agent card to the JSON of A2A 0.3. Adds nothing of its own.

Leaves out what 0.3 can't express: tenants, `pkceRequired`, the device code flow. Leaves out signatures too: they were made
over the JSON of 1.0 and are not valid for this one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from msgspec import to_builtins

from .card import AgentCard, ApiKey, HttpAuth, MutualTls, OAuth2, OpenIdConnect, Scheme, SecurityRequirement
from .types import JsonObject

PROTOCOL_VERSION: Final = "0.3.0"

_TYPES: Final[dict[type[Scheme], str]] = {
    ApiKey: "apiKey",
    HttpAuth: "http",
    OAuth2: "oauth2",
    OpenIdConnect: "openIdConnect",
    MutualTls: "mutualTLS",
}
"""OpenAPI's names for the kinds of security schemes."""

_REPLACED: Final = ("supportedInterfaces", "capabilities", "securityRequirements", "securitySchemes", "signatures")
"""Members of a card of 1.0 that 0.3 lacks, or has in another form."""


def card_to_v03(card: AgentCard) -> JsonObject:
    """Return the card for clients of 0.3, with the interfaces of that version, or with all of them if there is none.

    Raises `ValueError` for a card without interfaces.
    """
    if not card.supported_interfaces:
        raise ValueError("a card needs at least one interface")
    supported = [each for each in card.supported_interfaces if each.protocol_version.startswith("0.")]
    interfaces = [
        {"url": each.url, "transport": each.protocol_binding} for each in supported or card.supported_interfaces
    ]
    plain: JsonObject = to_builtins(card)
    extended = plain["capabilities"].pop("extendedAgentCard", None)
    optional = {
        "securitySchemes": {name: scheme_to_v03(each.scheme) for name, each in card.security_schemes.items()},
        "security": _security(card.security_requirements),
    }
    return {
        "protocolVersion": PROTOCOL_VERSION,
        "name": card.name,
        "description": card.description,
        "url": interfaces[0]["url"],
        "preferredTransport": interfaces[0]["transport"],
        "additionalInterfaces": interfaces,
        "capabilities": plain["capabilities"],
        **{name: value for name, value in plain.items() if name not in _REPLACED},
        "skills": [
            _skill(skill, given.security_requirements)
            for skill, given in zip(plain["skills"], card.skills, strict=True)
        ],
        **{name: value for name, value in optional.items() if value},
        **({} if extended is None else {"supportsAuthenticatedExtendedCard": extended}),
    }


def _skill(skill: JsonObject, requirements: Iterable[SecurityRequirement]) -> JsonObject:
    skill.pop("securityRequirements", None)
    return {**skill, "security": security} if (security := _security(requirements)) else skill


def _security(requirements: Iterable[SecurityRequirement]) -> list[dict[str, Any]]:
    return [{name: scopes.list for name, scopes in each.schemes.items()} for each in requirements]


def scheme_to_v03(scheme: Scheme) -> JsonObject:
    """Return a security scheme for clients of 0.3, which has those of OpenAPI."""
    plain: JsonObject = {"type": _TYPES[type(scheme)], **to_builtins(scheme)}
    if isinstance(scheme, ApiKey):
        plain["in"] = plain.pop("location")
    if isinstance(scheme, OAuth2):
        plain["flows"].pop("deviceCode", None)
        plain["flows"].get("authorizationCode", {}).pop("pkceRequired", None)
    return plain
