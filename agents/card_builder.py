"""Makes the agent's card, of the `Agent` that a developer declared or of the operations that the daemon hosts.

The card says what callers may call. It must never hold a setting, a path or a token. It is in the form of 1.0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, final

import msgspec
from msgspec import ValidationError, convert, to_builtins
from msgspec.structs import replace

from ..a2a.card import (
    AgentCard,
    AgentInterface,
    Capabilities,
    Extension,
    HttpAuth,
    SecurityRequirement,
    Skill,
    requires,
    validate_card,
    wrap_scheme,
)
from ..a2a.errors import public_card_hint
from ..daemon.dispatch.execution import Raised, attempt_now
from ..daemon.logs import log
from ..daemon.operations.access import Access, AccessRule, IdentityProvider, challenge
from ..daemon.operations.identity import Identity
from ..daemon.operations.service import Service
from ..daemon.operations.spec import OperationSpec
from ..daemon.settings import Settings
from ..daemon.settings.option import without_folder
from ..errors.exceptions import FailureError
from ..errors.failures import ExtendedAgentCardNotConfigured, Internal, InvalidAgentResponse, UnsupportedOperation
from ..errors.redaction import scrub_known
from .agent import Agent

BINDING: Final = "urn:discreet:a2a:stdio:1"
"""The stdio binding (A2A 1.0, section 5.8). A breaking change of it takes the next number."""

PUSH_DELIVERY: Final = Extension(
    "urn:discreet:a2a:push:1",
    "Push notifications that wait when the agent's process is killed are not sent later. GetTask tells how a task stands.",
)
"""An extension that no client has to support: it tells which notifications may be lost."""

VERSIONS: Final = ("1.0", "0.3")
"""The supported versions of A2A, the preferred one first."""

JSON: Final = "application/json"

_HOW_TO_CALL: Final = 'A message runs a skill by a data part {"skill": ID, "input": PARAMS}.'


def stdio_interfaces(settings: Settings) -> tuple[AgentInterface, ...]:
    """The interfaces of a daemon with these settings on its stdin and stdout.

    The URL is `stdio:` and the command line, quoted for a POSIX shell and then percent-encoded (RFC 3986). The command line
    has the served apps, files without their folders, and the framing only: other settings may hold paths and digests.
    """
    import shlex  # late: few daemons are asked for a card
    from urllib.parse import quote

    framing = () if settings.framing in (None, "content-length") else (f"--framing={settings.framing}",)
    command = shlex.join(["discreet", "serve", *map(without_folder, settings.apps), *framing])
    url = f"stdio:{quote(command, safe='/:=,@')}"
    return tuple(AgentInterface(url=url, protocol_binding=BINDING, protocol_version=version) for version in VERSIONS)


HTTP_BINDINGS: Final = (
    ("JSONRPC", "1.0"),
    ("HTTP+JSON", "1.0"),
    ("JSONRPC", "0.3"),
    ("HTTP+JSON", "0.3"),
)
"""The bindings of the HTTP gateway: name and version of A2A (A2A 1.0, sections 9 and 11). All are below the same URL: clients of
HTTP+JSON 0.3 add `/v1` to it themselves."""


def http_interfaces(url: str) -> tuple[AgentInterface, ...]:
    """The interfaces of a gateway that is reached under this URL."""
    base = url.rstrip("/") + "/"
    return tuple(
        AgentInterface(url=base, protocol_binding=binding, protocol_version=version)
        for binding, version in HTTP_BINDINGS
    )


def grpc_interface(url: str, port: int) -> AgentInterface:
    """The interface of gRPC at this port of the machine that is reached under this URL. Its own is the target of a channel."""
    from urllib.parse import urlsplit  # late, as above

    host = urlsplit(url).hostname or ""
    target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return AgentInterface(url=target, protocol_binding="GRPC", protocol_version="1.0")


class InvalidCard(Exception):
    """An agent's own function has made something that is no card."""


@final
class CardBuilder:
    """The cards of one daemon.

    `interfaces` are those over stdio, the preferred one first. A card for a `url` names those of the gateway there instead, for
    one that begins with `grpc:` gRPC alone. `version` is that of the agent that runs operations; an `Agent` has its own. With
    `pushes` false no card announces push notifications. `sign(card)` adds the daemon's signatures. `grpc_port()` is where gRPC
    is served, 0 for nowhere.
    """

    def __init__(
        self,
        services: Sequence[Service],
        agent: Agent | None,
        access: Access,
        *,
        version: str,
        interfaces: Sequence[AgentInterface],
        pushes: bool = True,
        sign: Callable[[AgentCard], AgentCard] = lambda card: card,
        grpc_port: Callable[[], int] = int,
    ) -> None:
        self._services = services
        self._agent = agent
        self._access = access
        self._version = version
        self._interfaces = tuple(interfaces)
        self._pushes = pushes
        self._sign = sign
        self._grpc_port = grpc_port

    def public(self, url: str = "") -> AgentCard:
        """The public card. Of operations it lists those that a caller without credentials may call."""
        if self._agent is None:
            return self._finished(self._of_operations(self._access.identify({}), url))
        return self._finished(self._of_agent(self._agent, url))

    @property
    def has_extended(self) -> bool:
        """Whether there is a card for callers that have authenticated."""
        return self._access.provider is not None if self._agent is None else self._agent.extended is not None

    def for_caller(
        self, identity: Identity | None, *, url: str, unsupported: UnsupportedOperation | ExtendedAgentCardNotConfigured
    ) -> AgentCard:
        """The card for a caller that has authenticated, and has reached the daemon under this URL; empty over stdio (A2A 1.0
        section 3.1.11).

        Raises `FailureError`: `unsupported` where the agent announces no extended card, `AuthenticationRequired` without an
        identity, `ExtendedAgentCardNotConfigured` where there is none, `InvalidAgentResponse` where the agent made none,
        `Internal` where it raised.
        """
        if not self.has_extended:
            raise FailureError(msgspec.structs.replace(unsupported, suggestion=public_card_hint(url)))
        if identity is None:
            provider = self._access.provider
            raise FailureError(Internal() if provider is None else challenge(provider))
        card = attempt_now(lambda: self.extended(identity, url), step="agent.extended")
        if isinstance(card, Raised):
            log.error("agent.failed", exc=card.exc)
            invalid = issubclass(type(card.exc), InvalidCard)
            raise FailureError(InvalidAgentResponse() if invalid else Internal())
        if card is None:
            raise FailureError(ExtendedAgentCardNotConfigured(suggestion=public_card_hint(url)))
        return card

    def extended(self, identity: Identity, url: str = "") -> AgentCard | None:
        """The card for this caller; None where there is none (−32007).

        Raises `InvalidCard` where the agent's function returned no card, and what it raises.
        """
        if self._agent is None:
            return self._finished(self._of_operations(identity, url)) if self.has_extended else None
        extended = self._agent.extended
        if extended is None:
            return None
        if isinstance(extended, AgentCard):
            card = extended
        else:
            made = extended(replace(self._of_agent(self._agent, url), signatures=()), identity)
            try:
                card = validate_card(made)
            except (TypeError, ValidationError) as exc:
                raise InvalidCard(str(exc)) from exc
        if not card.supported_interfaces:
            card = replace(card, supported_interfaces=self._interfaces_at(url))
        return self._finished(card)

    def _finished(self, card: AgentCard) -> AgentCard:
        return self._sign(_without_known_secrets(card))

    def _interfaces_at(self, url: str) -> tuple[AgentInterface, ...]:
        if not url:
            return self._interfaces
        by_http = () if url.startswith("grpc:") else http_interfaces(url)
        port = self._grpc_port()
        return (*by_http, grpc_interface(url, port)) if port else by_http

    def _of_agent(self, agent: Agent, url: str) -> AgentCard:
        declared = agent.card
        card = replace(
            declared,
            supported_interfaces=self._interfaces_at(url),
            capabilities=self._with_push(declared.capabilities),
        )
        provider = self._access.provider
        if provider is None or declared.security_schemes:
            return card
        return _secured(card, provider, optional=False)

    def _with_push(self, declared: Capabilities) -> Capabilities:
        """Say whether this daemon sends push notifications, and which of them may be lost."""
        if not declared.push_notifications:
            return declared
        if not self._pushes:
            return replace(declared, push_notifications=False)
        return replace(declared, extensions=(*declared.extensions, PUSH_DELIVERY))

    def _of_operations(self, identity: Identity | None, url: str) -> AgentCard:
        external = [spec for service in self._services for spec in service.operations if spec.visibility == "external"]
        provider = self._access.provider
        schemes = () if provider is None else _keys(provider)
        known_only = provider is not None and bool(url)  # by HTTP, callers must be known
        hidden = known_only and identity is None
        card = AgentCard(
            name=self._name(),
            description=self._description(),
            supported_interfaces=self._interfaces_at(url),
            version=self._version,
            capabilities=self._with_push(
                Capabilities(streaming=True, push_notifications=True, extended_agent_card=self.has_extended)
            ),
            default_input_modes=(JSON,),
            default_output_modes=(JSON,),
            skills=tuple(
                _skill(spec, () if spec.access.open and not known_only else schemes)
                for spec in external
                if spec.access.allows(identity) and not (hidden and not spec.access.public)
            ),
        )
        if provider is None:
            return card
        return _secured(card, provider, optional=not known_only and any(spec.access.open for spec in external))

    def _name(self) -> str:
        namespaces = self._namespaces()
        return namespaces[0] if len(namespaces) == 1 else "discreet"

    def _description(self) -> str:
        described = [service.description for service in self._services if service.description]
        named_only = [f"Runs the operations of {', '.join(self._namespaces())}."] if self._namespaces() else []
        return " ".join([*(described or named_only or ["Runs operations."]), _HOW_TO_CALL])

    def _namespaces(self) -> list[str]:
        return list(dict.fromkeys(service.namespace for service in self._services if service.namespace))


def _without_known_secrets(card: AgentCard) -> AgentCard:
    """The card itself, or a copy where a text of it holds a registered secret, such as one from the environment."""
    plain = to_builtins(card)
    safe = _scrub_texts(plain)
    return card if safe == plain else convert(safe, AgentCard)


def _scrub_texts(value: Any) -> Any:  # JSON
    match value:
        case str():
            return scrub_known(value)
        case dict():
            return {key: _scrub_texts(item) for key, item in value.items()}
        case list() | tuple():
            return [_scrub_texts(item) for item in value]
        case _:
            return value


def _skill(spec: OperationSpec, schemes: Sequence[str]) -> Skill:
    return Skill(
        id=spec.name,
        name=spec.name,
        description=spec.description or f"Runs {spec.name}.",
        tags=tuple(filter(None, (spec.namespace, spec.kind))),
        security_requirements=tuple(_required(spec.access, schemes)),
    )


def _required(rule: AccessRule, schemes: Iterable[str]) -> Iterator[SecurityRequirement]:
    """An access rule, which needs all of some scopes and one of others, as alternative requirements."""
    needed = sorted(rule.all_of)
    others = [] if rule.all_of & rule.any_of else sorted(rule.any_of)
    for scheme in schemes:
        for more in [[other] for other in others] or [[]]:
            yield requires({scheme: [*needed, *more]})


def _secured(card: AgentCard, provider: IdentityProvider, *, optional: bool) -> AgentCard:
    """The card with the provider's schemes. `optional` adds the empty requirement: one may also call without credentials."""
    keys = _keys(provider)
    if not keys:
        return card
    usage = f"The value of serviceParams.authorization; the realm is {provider.realm}."
    alternatives = [requires({key: []}) for key in keys]
    return replace(
        card,
        security_schemes={key: wrap_scheme(HttpAuth(key, usage)) for key in keys},
        security_requirements=(*alternatives, *([SecurityRequirement()] if optional else [])),
    )


def _keys(provider: IdentityProvider) -> tuple[str, ...]:
    """The provider's schemes, each once: their case has no meaning (RFC 9110, section 11.1)."""
    return tuple(dict.fromkeys(scheme.lower() for scheme in provider.schemes))
