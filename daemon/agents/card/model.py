"""The agent card: what an agent tells of itself before anybody speaks to it (A2A 1.0, sections 4.4 and 4.5).

These structs are at once the JSON of the 1.0 dialect. What the specification requires is always written, all else only
where it was given (sections 5.7 and 8.4.1), so that a signature made over one writing holds for the next. Holds data,
derives nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta, Struct, field

from ..model.types import JsonObject, Name, Wire

MediaType: TypeAlias = Annotated[str, Meta(pattern=r"^[^\s/;]+/[^\s/;]+(?:;.*)?$")]


class AgentInterface(Wire, frozen=True, kw_only=True):
    """One way to reach the agent (4.4.6). `protocol_version` is `1.0` or `0.3`."""

    url: Name
    protocol_binding: Name
    protocol_version: Name
    tenant: str | None = None


class Provider(Wire, frozen=True, kw_only=True):
    """Who offers the agent (4.4.2)."""

    organization: Name
    url: Name


class Extension(Wire, frozen=True):
    """An extension of the protocol (4.4.4). With `required` a client that does not name it is refused."""

    uri: Name
    description: str | None = None
    required: bool = False
    params: JsonObject | None = None


class Capabilities(Wire, frozen=True, kw_only=True):
    """What the agent can do beyond the core (4.4.3). None says nothing."""

    streaming: bool | None = None
    push_notifications: bool | None = None
    extensions: tuple[Extension, ...] = ()
    extended_agent_card: bool | None = None


class Scopes(Wire, frozen=True):
    """The scopes that a scheme has to grant; none where it has none."""

    list: tuple[str, ...] = ()


class SecurityRequirement(Wire, frozen=True):
    """The schemes that are needed together, by their names. Of several requirements one is enough. See `requires`."""

    schemes: dict[str, Scopes] = field(default_factory=dict)


class Skill(Wire, frozen=True, kw_only=True):
    """Something that the agent does well (4.4.5). `input_modes` and `output_modes` replace the agent's own."""

    id: Name
    name: Name
    description: Name
    tags: tuple[str, ...]
    examples: tuple[str, ...] = ()
    input_modes: tuple[MediaType, ...] = ()
    output_modes: tuple[MediaType, ...] = ()
    security_requirements: tuple[SecurityRequirement, ...] = ()


class Signature(Wire, frozen=True, kw_only=True):
    """A JWS over the card (4.4.7, 8.4). It is passed on as it is: made and checked elsewhere."""

    protected: Name
    signature: Name
    header: JsonObject | None = None


class ApiKey(Wire, frozen=True, kw_only=True):
    """A key in a header, a query, or a cookie (4.5.2)."""

    name: Name
    location: Literal["query", "header", "cookie"]
    description: str | None = None


class HttpAuth(Wire, frozen=True):
    """A scheme of the `Authorization` header, such as `Bearer` (4.5.3). Over stdio: of `serviceParams.authorization`."""

    scheme: Name
    description: str | None = None
    bearer_format: str | None = None


class AuthorizationCode(Wire, frozen=True, kw_only=True):
    """4.5.8"""

    authorization_url: Name
    token_url: Name
    scopes: dict[str, str]
    refresh_url: str | None = None
    pkce_required: bool = False


class ClientCredentials(Wire, frozen=True, kw_only=True):
    """4.5.9"""

    token_url: Name
    scopes: dict[str, str]
    refresh_url: str | None = None


class Implicit(Wire, frozen=True, kw_only=True):
    """Deprecated by the specification: use `AuthorizationCode` with PKCE."""

    authorization_url: Name
    scopes: dict[str, str]
    refresh_url: str | None = None


class Password(Wire, frozen=True, kw_only=True):
    """Deprecated by the specification: use `AuthorizationCode` with PKCE, or `DeviceCode`."""

    token_url: Name
    scopes: dict[str, str]
    refresh_url: str | None = None


class DeviceCode(Wire, frozen=True, kw_only=True):
    """4.5.10. The 0.3 dialect has no words for it."""

    device_authorization_url: Name
    token_url: Name
    scopes: dict[str, str]
    refresh_url: str | None = None


class OAuthFlows(Wire, frozen=True, kw_only=True):
    """Exactly one flow (4.5.7). Raises `ValueError` for none and for several."""

    authorization_code: AuthorizationCode | None = None
    client_credentials: ClientCredentials | None = None
    implicit: Implicit | None = None
    password: Password | None = None
    device_code: DeviceCode | None = None

    def __post_init__(self) -> None:
        _require_one(self)


class OAuth2(Wire, frozen=True):
    """OAuth 2.0 (4.5.4)."""

    flows: OAuthFlows
    description: str | None = None
    oauth2_metadata_url: str | None = None


class OpenIdConnect(Wire, frozen=True):
    """OpenID Connect (4.5.5). The URL is that of the provider's metadata."""

    open_id_connect_url: Name
    description: str | None = None


class MutualTls(Wire, frozen=True):
    """A certificate of the client's (4.5.6)."""

    description: str | None = None


Scheme: TypeAlias = ApiKey | HttpAuth | OAuth2 | OpenIdConnect | MutualTls
"""How callers can show who they are."""


class SecurityScheme(Wire, frozen=True, kw_only=True):
    """One `Scheme`, under the name of its kind (4.5.1). Raises `ValueError` for none and for several. See `named`."""

    api_key_security_scheme: ApiKey | None = None
    http_auth_security_scheme: HttpAuth | None = None
    oauth2_security_scheme: OAuth2 | None = None
    open_id_connect_security_scheme: OpenIdConnect | None = None
    mtls_security_scheme: MutualTls | None = None

    def __post_init__(self) -> None:
        _require_one(self)

    @property
    def scheme(self) -> Scheme:
        """The one that is there."""
        found: Scheme = next(value for name in self.__struct_fields__ if (value := getattr(self, name)) is not None)
        return found


class AgentCard(Wire, frozen=True, kw_only=True):
    """The card (4.4.1). The first interface is the preferred one; the skills may be none."""

    name: Name
    description: Name
    supported_interfaces: tuple[AgentInterface, ...]
    version: Name
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


def scopes_of(requirement: SecurityRequirement) -> frozenset[str]:
    """All scopes that a requirement asks for, of whichever scheme."""
    return frozenset(scope for scopes in requirement.schemes.values() for scope in scopes.list)


def requires(schemes: Mapping[str, Sequence[str]]) -> SecurityRequirement:
    """The requirement of these schemes, all of them, each with these scopes: `requires({"bearer": ["files:read"]})`."""
    return SecurityRequirement({name: Scopes(tuple(scopes)) for name, scopes in schemes.items()})


def named(scheme: Scheme) -> SecurityScheme:
    """A scheme as it stands in a card."""
    match scheme:
        case ApiKey():
            return SecurityScheme(api_key_security_scheme=scheme)
        case HttpAuth():
            return SecurityScheme(http_auth_security_scheme=scheme)
        case OAuth2():
            return SecurityScheme(oauth2_security_scheme=scheme)
        case OpenIdConnect():
            return SecurityScheme(open_id_connect_security_scheme=scheme)
        case MutualTls():
            return SecurityScheme(mtls_security_scheme=scheme)
        case _:  # what users hand in, whatever they annotate
            raise TypeError(f"a {type(scheme).__name__} is no security scheme")


def checked(card: AgentCard) -> AgentCard:
    """The same card with every field of the type that it should be, however it was put together.

    Raises `TypeError` or `msgspec.ValidationError`, one line that names the field.
    """
    if not isinstance(card, AgentCard):
        raise TypeError(f"a {type(card).__name__} is no AgentCard")
    return msgspec.json.decode(msgspec.json.encode(card), type=AgentCard)


def _require_one(struct: Struct) -> None:
    if sum(getattr(struct, name) is not None for name in struct.__struct_fields__) != 1:
        raise ValueError(f"{type(struct).__name__} holds exactly one of {', '.join(struct.__struct_fields__)}")
