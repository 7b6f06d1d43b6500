"""The agent card, which describes an agent to its clients (A2A 1.0, sections 4.4 and 4.5). Holds data, derives nothing.

Encoded, these structs are the JSON of A2A 1.0. Required members are always written, other ones only if they are set
(sections 5.7 and 8.4.1), so that a signature over the JSON holds whenever it is written again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal, TypeAlias, get_args

import msgspec
from msgspec import Meta, Struct, field

from ..errors.decoders import decoder_for
from .types import JsonObject, NonEmptyStr, WireStruct

MediaType: TypeAlias = Annotated[str, Meta(pattern=r"^[^\s/;]+/[^\s/;]+(?:;.*)?$")]


class AgentInterface(WireStruct, frozen=True, kw_only=True):
    """One way to reach the agent (4.4.6). `protocol_version` is `1.0` or `0.3`."""

    url: NonEmptyStr
    protocol_binding: NonEmptyStr
    protocol_version: NonEmptyStr
    tenant: str | None = None


class Provider(WireStruct, frozen=True, kw_only=True):
    """The organization that offers the agent (4.4.2)."""

    organization: NonEmptyStr
    url: NonEmptyStr


class Extension(WireStruct, frozen=True):
    """An extension of the protocol (4.4.4). If it is `required`, clients that do not name it are refused."""

    uri: NonEmptyStr
    description: str | None = None
    required: bool = False
    params: JsonObject | None = None


class Capabilities(WireStruct, frozen=True, kw_only=True):
    """Optional capabilities of the agent (4.4.3). None leaves a capability out of the card."""

    streaming: bool | None = None
    push_notifications: bool | None = None
    extensions: tuple[Extension, ...] = ()
    extended_agent_card: bool | None = None


class Scopes(WireStruct, frozen=True):
    """The scopes that a scheme must grant; empty for schemes without scopes."""

    list: tuple[str, ...] = ()


class SecurityRequirement(WireStruct, frozen=True):
    """Schemes by name that a client needs together, each with its scopes. A client has to meet one requirement of a list. See
    `requires`."""

    schemes: dict[str, Scopes] = field(default_factory=dict)


class Skill(WireStruct, frozen=True, kw_only=True):
    """An ability of the agent (4.4.5). `input_modes` and `output_modes` replace those of the agent."""

    id: NonEmptyStr
    name: NonEmptyStr
    description: NonEmptyStr
    tags: tuple[str, ...]
    examples: tuple[str, ...] = ()
    input_modes: tuple[MediaType, ...] = ()
    output_modes: tuple[MediaType, ...] = ()
    security_requirements: tuple[SecurityRequirement, ...] = ()


class Signature(WireStruct, frozen=True, kw_only=True):
    """A JWS over the card (4.4.7, 8.4). It is neither made nor verified here."""

    protected: NonEmptyStr
    signature: NonEmptyStr
    header: JsonObject | None = None


class ApiKey(WireStruct, frozen=True, kw_only=True):
    """An API key in a header, a query, or a cookie (4.5.2)."""

    name: NonEmptyStr
    location: Literal["query", "header", "cookie"]
    description: str | None = None


class HttpAuth(WireStruct, frozen=True):
    """A scheme of the `Authorization` header, such as `Bearer` (4.5.3); over stdio, of `serviceParams.authorization`."""

    scheme: NonEmptyStr
    description: str | None = None
    bearer_format: str | None = None


class AuthorizationCode(WireStruct, frozen=True, kw_only=True):
    """The authorization code flow (4.5.8)."""

    authorization_url: NonEmptyStr
    token_url: NonEmptyStr
    scopes: dict[str, str]
    refresh_url: str | None = None
    pkce_required: bool = False


class ClientCredentials(WireStruct, frozen=True, kw_only=True):
    """The client credentials flow (4.5.9)."""

    token_url: NonEmptyStr
    scopes: dict[str, str]
    refresh_url: str | None = None


class Implicit(WireStruct, frozen=True, kw_only=True):
    """The implicit flow. Deprecated by the specification: use `AuthorizationCode` with PKCE."""

    authorization_url: NonEmptyStr
    scopes: dict[str, str]
    refresh_url: str | None = None


class Password(WireStruct, frozen=True, kw_only=True):
    """The password flow. Deprecated by the specification: use `AuthorizationCode` with PKCE, or `DeviceCode`."""

    token_url: NonEmptyStr
    scopes: dict[str, str]
    refresh_url: str | None = None


class DeviceCode(WireStruct, frozen=True, kw_only=True):
    """The device code flow (4.5.10), which A2A 0.3 can't express."""

    device_authorization_url: NonEmptyStr
    token_url: NonEmptyStr
    scopes: dict[str, str]
    refresh_url: str | None = None


class OAuthFlows(WireStruct, frozen=True, kw_only=True):
    """One flow of OAuth 2.0, in the member for its kind (4.5.7). Raises `ValueError` for none or several."""

    authorization_code: AuthorizationCode | None = None
    client_credentials: ClientCredentials | None = None
    implicit: Implicit | None = None
    password: Password | None = None
    device_code: DeviceCode | None = None

    def __post_init__(self) -> None:
        _check_exactly_one(self)


class OAuth2(WireStruct, frozen=True):
    """OAuth 2.0 (4.5.4)."""

    flows: OAuthFlows
    description: str | None = None
    oauth2_metadata_url: str | None = None


class OpenIdConnect(WireStruct, frozen=True):
    """OpenID Connect (4.5.5). The URL leads to the provider's discovery document."""

    open_id_connect_url: NonEmptyStr
    description: str | None = None


class MutualTls(WireStruct, frozen=True):
    """Mutual TLS (4.5.6): the client presents a certificate."""

    description: str | None = None


Scheme: TypeAlias = ApiKey | HttpAuth | OAuth2 | OpenIdConnect | MutualTls
"""How a client can authenticate."""


class SecurityScheme(WireStruct, frozen=True, kw_only=True):
    """One `Scheme`, in the member for its kind (4.5.1). Raises `ValueError` for none or several. See `wrap_scheme`."""

    api_key_security_scheme: ApiKey | None = None
    http_auth_security_scheme: HttpAuth | None = None
    oauth2_security_scheme: OAuth2 | None = None
    open_id_connect_security_scheme: OpenIdConnect | None = None
    mtls_security_scheme: MutualTls | None = None

    def __post_init__(self) -> None:
        _check_exactly_one(self)

    @property
    def scheme(self) -> Scheme:
        """The scheme that is set."""
        found: Scheme = next(value for name in self.__struct_fields__ if (value := getattr(self, name)) is not None)
        return found


_MEMBERS: Final = dict(
    zip(get_args(Scheme), SecurityScheme.__struct_fields__, strict=True)
)  # both in the order of 4.5.1


class AgentCard(WireStruct, frozen=True, kw_only=True):
    """An agent's description of itself (4.4.1). The first interface is the preferred one. `skills` may be empty."""

    name: NonEmptyStr
    description: NonEmptyStr
    supported_interfaces: tuple[AgentInterface, ...]
    version: NonEmptyStr
    capabilities: Capabilities
    default_input_modes: tuple[MediaType, ...]
    default_output_modes: tuple[MediaType, ...]
    skills: tuple[Skill, ...]
    provider: Provider | None = None
    documentation_url: str | None = None
    security_schemes: dict[str, SecurityScheme] = field(default_factory=dict)
    security_requirements: tuple[SecurityRequirement, ...] = ()
    signatures: tuple[Signature, ...] = ()
    icon_url: str | None = None


def required_scopes(requirement: SecurityRequirement) -> frozenset[str]:
    """Return all scopes that a requirement asks for, of all its schemes."""
    return frozenset(scope for scopes in requirement.schemes.values() for scope in scopes.list)


def requires(schemes: Mapping[str, Sequence[str]]) -> SecurityRequirement:
    """Make a requirement of all these schemes, each with its scopes: `requires({"bearer": ["files:read"]})`."""
    return SecurityRequirement({name: Scopes(tuple(scopes)) for name, scopes in schemes.items()})


def wrap_scheme(scheme: Scheme) -> SecurityScheme:
    """Return the scheme in the form that a card holds. Raises `TypeError` for an object that is no scheme."""
    name = _MEMBERS.get(type(scheme))
    if name is None:  # users may pass anything
        raise TypeError(f"{type(scheme).__name__} is not a security scheme")
    member: dict[str, Any] = {name: scheme}
    return SecurityScheme(**member)


def validate_card(card: AgentCard) -> AgentCard:
    """Return a copy of the card in which every field has its declared type.

    Raises `TypeError` or `msgspec.ValidationError`, one line that names the field.
    """
    if not isinstance(card, AgentCard):
        raise TypeError(f"{type(card).__name__} is not an AgentCard")
    return decoder_for(AgentCard)(msgspec.json.encode(card))


def _check_exactly_one(struct: Struct) -> None:
    if sum(getattr(struct, name) is not None for name in struct.__struct_fields__) != 1:
        raise ValueError(f"{type(struct).__name__} needs exactly one of {', '.join(struct.__struct_fields__)}")
