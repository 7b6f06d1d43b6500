"""How developers declare an agent: its executor, and what its card says. Checks the declaration and does nothing else.

agent = Agent(
    Greeter(),
    name="Greeter",
    description="Greets people.",
    skills=[Skill(id="greet", name="Greet", description="Says hello.", tags=("small talk",))],
)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypedDict, Unpack, final

import msgspec

from ..operations.access import Identity
from ..operations.service import DeclarationError
from .card.model import (
    AgentCard,
    Capabilities,
    Extension,
    Provider,
    Scheme,
    SecurityRequirement,
    Signature,
    Skill,
    validate_card,
    wrap_scheme,
)

if TYPE_CHECKING:
    from .interceptor import Interceptor
    from .tasks.executor import AgentExecutor

TEXT: Final = ("text/plain",)

Extended: TypeAlias = AgentCard | Callable[[AgentCard, Identity], AgentCard]
"""The card for callers who have shown who they are; or what makes it, of the public card and of who calls."""


class AgentOptions(TypedDict, total=False):
    """What an agent may say of itself, all of it optional.

    `version` is the agent's own. `input_modes` and `output_modes` are media types. A caller who does not name a required
    one of the `extensions` is refused. `security_schemes` are by name, and `security` are the requirements of which a
    caller has to fulfil one (`requires({"bearer": ["files:read"]})`); without schemes the card tells those of the
    daemon's own tokens or identity provider. `signatures` go into the public card as they are.

    `extended` is the card for callers who have shown who they are. Where it has no interfaces it gets the daemon's. A
    function is called for every such request with the public card, unsigned, and the caller; it must not block.
    `interceptors` stand around every call. `streaming` and `push_notifications` say what callers may ask for.
    """

    version: str
    skills: Sequence[Skill]
    provider: Provider | None
    documentation_url: str | None
    icon_url: str | None
    input_modes: Sequence[str]
    output_modes: Sequence[str]
    extensions: Sequence[Extension]
    security_schemes: Mapping[str, Scheme]
    security: Sequence[SecurityRequirement]
    signatures: Sequence[Signature]
    extended: Extended | None
    interceptors: Sequence[Interceptor]
    streaming: bool
    push_notifications: bool


@final
class Agent:
    """An agent to be hosted: `discreet serve app:agent`. A daemon hosts one; services may stand beside it.

    Raises `DeclarationError`, one line that names the agent and what to change. `card` is what was declared, without
    interfaces, which are the daemon's.
    """

    def __init__(
        self, executor: AgentExecutor, *, name: str, description: str, **options: Unpack[AgentOptions]
    ) -> None:
        try:
            _check_options(options)
            _check_executor(executor)
            self.executor: Final = executor
            self.card: Final = _declared(name, description, options)
            self.extended: Final = _extended(options.get("extended"))
            self.interceptors: Final = _interceptors(options.get("interceptors", ()))
        except (TypeError, ValueError, msgspec.ValidationError) as exc:
            raise DeclarationError(f"agent {name!r}: {exc}") from exc


def _check_options(options: AgentOptions) -> None:
    unknown = options.keys() - AgentOptions.__annotations__.keys()
    if unknown:
        raise TypeError(f"there is no option {', '.join(sorted(unknown))}")


def _check_executor(executor: object) -> None:
    """What type checkers say, for those who don't run one."""
    if isinstance(executor, type):
        raise TypeError(f"the executor is an object: write {executor.__name__}()")
    for name in ("execute", "cancel"):
        method = getattr(executor, name, None)
        if not callable(method):
            raise TypeError(f"the executor has no method {name}")
        if inspect.isroutine(method) and not inspect.iscoroutinefunction(method):
            raise TypeError(f"the executor's {name} is an `async def` without `yield`")


def _declared(name: str, description: str, options: AgentOptions) -> AgentCard:
    card = validate_card(
        AgentCard(
            name=name,
            description=description,
            supported_interfaces=(),
            version=options.get("version", "0.0.0"),
            capabilities=Capabilities(
                streaming=options.get("streaming", True),
                push_notifications=options.get("push_notifications", True),
                extensions=_any(options.get("extensions", ())),
                extended_agent_card=options.get("extended") is not None,
            ),
            default_input_modes=_any(options.get("input_modes", TEXT)),
            default_output_modes=_any(options.get("output_modes", TEXT)),
            skills=_any(options.get("skills", ())),
            provider=options.get("provider"),
            documentation_url=options.get("documentation_url"),
            security_schemes={key: wrap_scheme(scheme) for key, scheme in options.get("security_schemes", {}).items()},
            security_requirements=_any(options.get("security", ())),
            signatures=_any(options.get("signatures", ())),
            icon_url=options.get("icon_url"),
        )
    )
    _check_card(card)
    return card


def _any(given: object) -> Any:  # Any: `checked` makes what it should be of it, or refuses it
    return given


def _check_card(card: AgentCard) -> None:
    """What no type can say."""
    _check_unique("skill", (skill.id for skill in card.skills))
    _check_unique("extension", (extension.uri for extension in card.capabilities.extensions))
    requirements = [
        *card.security_requirements,
        *(each for skill in card.skills for each in skill.security_requirements),
    ]
    for requirement in requirements:
        for name in requirement.schemes:
            if name not in card.security_schemes:
                raise ValueError(f"security names the scheme {name!r}, which is not in security_schemes")


def _check_unique(what: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"{what} {name!r} is declared twice")
        seen.add(name)


def _extended(extended: Extended | None) -> Extended | None:
    if extended is None or callable(extended):
        return extended
    card = validate_card(extended)
    _check_card(card)
    return card


def _interceptors(given: Sequence[Interceptor]) -> tuple[Interceptor, ...]:
    interceptors = tuple(given)
    for interceptor in interceptors:
        if not (callable(getattr(interceptor, "before", None)) and callable(getattr(interceptor, "after", None))):
            raise TypeError(f"an interceptor has the methods before and after; a {type(interceptor).__name__} has not")
    return interceptors
