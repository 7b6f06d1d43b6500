"""Declares an agent: its executor, its card, its interceptors. Checks the declaration and runs nothing.

agent = Agent(
    Greeter(),
    name="Greeter",
    description="Greets people.",
    skills=[Skill(id="greet", name="Greet", description="Says hello.", tags=("small talk",))],
)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypedDict, Unpack, final

import msgspec

from ..a2a.card import (
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
from ..daemon.hosted_agent import AgentDeclaration
from ..daemon.operations.identity import Identity
from ..daemon.operations.service import DeclarationError
from ..errors.failures import Failure
from ..errors.nearest import nearest_hint
from .editor import AcpOptions, check_unique, checked_acp_options

if TYPE_CHECKING:
    from .executor import AgentExecutor
    from .stores.interface import TaskStore


class AgentCall(msgspec.Struct, frozen=True):
    """A call of one of the agent's methods. `service_params` may hold credentials: don't log them.

    `task_id` is None if the call names no task. `params` is the same struct in every version of A2A: a `SendRequest`, or one
    with `task_id`, `config_id` or `query`; None for the card. An interceptor can't change them.
    """

    method: str
    version: str
    identity: Identity | None
    service_params: Mapping[str, str]
    task_id: str | None = None
    params: object = None


class CallResult(msgspec.Struct, frozen=True):
    """The outcome of a call that succeeded.

    `result` is a `Task`, a `Message`, a page of tasks, one or several push configs, or a card. It is None for a stream, whose
    items were sent already, and for a deleted config.
    """

    result: object = None


Outcome: TypeAlias = Failure | CallResult
"""How a call ended."""


class Interceptor(Protocol):
    """Runs around every call of the agent's methods: `before` in the order of the declaration, `after` in reverse."""

    async def before(self, call: AgentCall) -> None:
        """Look at a call before it runs. Raises a declared error, or `FailureError`, to refuse it."""
        ...

    async def after(self, call: AgentCall, outcome: Outcome) -> CallResult | None:
        """Take the outcome of a call. Called if `before` returned, even if the call was refused later or cancelled.

        A `CallResult` that is returned stands in the place of the one that was given: its result must be of the same type, with
        the same id where it has one, or the caller gets an internal error. It changes what this caller reads, and not what is
        stored. For a stream it is called at the end, and changes nothing. Its exceptions are logged and change nothing.
        """
        ...


TEXT_MODES: Final = ("text/plain",)

ExtendedCardSource: TypeAlias = AgentCard | Callable[[AgentCard, Identity], AgentCard]
"""The card for callers that have authenticated; or a function that makes it of the public card and the caller."""


class AgentOptions(TypedDict, total=False):
    """The options of `Agent`.

    `version` is the agent's own. `input_modes` and `output_modes` are media types. A caller that does not name a required one
    of the `extensions` is refused. `security_schemes` maps names to schemes. A caller has to meet one of the requirements in
    `security` (`requires({"bearer": ["files:read"]})`). Without schemes the card lists those of the daemon's own tokens or
    identity provider. `signatures` go into the public card unchanged.

    `extended` is the card for callers that have authenticated. Without interfaces it gets the daemon's. A function is called
    for every request of that card, with the public card without its signatures and with the caller's identity. It must not
    block. `interceptors` run around every call. `streaming` and `push_notifications` say what callers may request. `acp` has
    the options for clients of the Agent Client Protocol.

    `store` keeps the tasks if the setting `store` names no other. It is opened and closed once.

    `replies_without_task` allows the executor to answer by `events.reply`. Then `execute` begins before its new task is in the
    store: the first event makes the task. Until then it can't be seen or cancelled, and it is lost if the process dies.

    With `deduplicates_messages` a message that is sent again, with the same `messageId`, gets the task that it began. Without, it
    begins another one.

    With `steps` the executor may use `events.step`, and has no `resume`: an execution that was cut off is executed again, and
    goes on behind the last step that is stored.
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
    extended: ExtendedCardSource | None
    interceptors: Sequence[Interceptor]
    acp: AcpOptions
    streaming: bool
    push_notifications: bool
    replies_without_task: bool
    deduplicates_messages: bool
    steps: bool
    store: TaskStore | None


@final
class Agent(AgentDeclaration):
    """An agent to serve: `discreet serve ./app.py:agent`. A daemon serves at most one, beside any number of services.

    `card` is the declared card without interfaces, which the daemon adds. Raises `DeclarationError`, in one line that names
    the agent and the fault.
    """

    def __init__(
        self, executor: AgentExecutor, *, name: str, description: str, **options: Unpack[AgentOptions]
    ) -> None:
        try:
            _check_options(options)
            _check_executor(executor)
            self.executor: Final = executor
            self.card: Final = _build_card(name, description, options)
            self.extended: Final = _checked_extended(options.get("extended"))
            self.interceptors: Final = _checked_interceptors(options.get("interceptors", ()))
            self.acp: Final = checked_acp_options(options.get("acp"))
            self.store: Final = _checked_store(options.get("store"))
            self.replies_without_task: Final = options.get("replies_without_task", False)
            self.deduplicates_messages: Final = options.get("deduplicates_messages", True)
            self.steps: Final = options.get("steps", False)
            if self.steps and callable(getattr(executor, "resume", None)):
                raise TypeError(
                    "with steps=True a resumed task is executed again: remove the executor's resume, or steps=True"
                )
        except (TypeError, ValueError, msgspec.ValidationError) as exc:
            raise DeclarationError(f"agent {name!r}: {exc}") from exc

    @property
    def name(self) -> str:
        return self.card.name

    @property
    def version(self) -> str:
        return self.card.version

    @property
    def takes_api_keys(self) -> bool:
        return any(each.api_key_security_scheme is not None for each in self.card.security_schemes.values())

    @property
    def input_modes(self) -> tuple[str, ...]:
        """The media types that the agent and its skills accept."""
        card = self.card
        return (*card.default_input_modes, *(mode for skill in card.skills for mode in skill.input_modes))


def _check_options(options: AgentOptions) -> None:
    known = AgentOptions.__annotations__
    unknown = sorted(options.keys() - known.keys())
    if unknown:
        raise TypeError(f"there is no option {', '.join(unknown)}{nearest_hint(unknown[0], known)}")


def _checked_store(store: TaskStore | None) -> TaskStore | None:
    if store is not None and (isinstance(store, type) or not callable(getattr(store, "commit", None))):
        raise TypeError("the store must be an object with the methods of TaskStore")
    return store


def _check_executor(executor: object) -> None:
    """The type checker's errors, for developers that run none."""
    if isinstance(executor, type):
        raise TypeError(f"the executor must be an object, not a class: write {executor.__name__}()")
    for name in ("execute", "cancel"):
        method = getattr(executor, name, None)
        if method is None and name == "cancel":  # what can't be cancelled
            continue
        if not callable(method):
            raise TypeError(f"the executor has no method {name}")
        if inspect.isroutine(method) and not inspect.iscoroutinefunction(method):
            raise TypeError(f"the executor's {name} must be an `async def` without `yield`")
        if inspect.isroutine(method) and not _takes(method, 2):
            raise TypeError(
                f"the executor's {name} is called with two arguments: `async def {name}(self, context, events)`"
            )


def _takes(method: Callable[..., object], count: int) -> bool:
    """Whether it can be called with so many positional arguments."""
    try:
        inspect.signature(method).bind(*[None] * count)
    except TypeError:
        return False
    except ValueError:  # a function of C that says nothing of itself
        return True
    return True


def _build_card(name: str, description: str, options: AgentOptions) -> AgentCard:
    card = validate_card(
        AgentCard(
            name=name,
            description=description,
            supported_interfaces=(),
            version=options.get("version", "0.0.0"),
            capabilities=Capabilities(
                streaming=options.get("streaming", True),
                push_notifications=options.get("push_notifications", True),
                extensions=_unchecked(options.get("extensions", ())),
                extended_agent_card=options.get("extended") is not None,
            ),
            default_input_modes=_unchecked(options.get("input_modes", TEXT_MODES)),
            default_output_modes=_unchecked(options.get("output_modes", TEXT_MODES)),
            skills=_unchecked(options.get("skills", ())),
            provider=options.get("provider"),
            documentation_url=options.get("documentation_url"),
            security_schemes={key: wrap_scheme(scheme) for key, scheme in options.get("security_schemes", {}).items()},
            security_requirements=_requirements(options.get("security", ())),
            signatures=_unchecked(options.get("signatures", ())),
            icon_url=options.get("icon_url"),
        )
    )
    _check_card(card)
    return card


def _requirements(given: Sequence[SecurityRequirement]) -> tuple[SecurityRequirement, ...]:
    """Raises `TypeError` for other forms, such as that of 0.3: read as one of 1.0 it would require nothing."""
    for each in given:
        if not isinstance(each, SecurityRequirement):
            raise TypeError(f'security takes requires({{"scheme": []}}), not a {type(each).__name__}')
    return tuple(given)


def _unchecked(given: object) -> Any:  # Any: `validate_card` converts it to the declared type, or refuses it
    return given


def _check_card(card: AgentCard) -> None:
    """Check what types can't express."""
    check_unique("skill", (skill.id for skill in card.skills))
    check_unique("extension", (extension.uri for extension in card.capabilities.extensions))
    requirements = [
        *card.security_requirements,
        *(each for skill in card.skills for each in skill.security_requirements),
    ]
    for requirement in requirements:
        for name in requirement.schemes:
            if name not in card.security_schemes:
                raise ValueError(f"security names the scheme {name!r}, which is not in security_schemes")


def _checked_extended(extended: ExtendedCardSource | None) -> ExtendedCardSource | None:
    if extended is None or callable(extended):
        return extended
    card = validate_card(extended)
    _check_card(card)
    return card


def _checked_interceptors(given: Sequence[Interceptor]) -> tuple[Interceptor, ...]:
    interceptors = tuple(given)
    for interceptor in interceptors:
        if not (callable(getattr(interceptor, "before", None)) and callable(getattr(interceptor, "after", None))):
            raise TypeError(
                f"an interceptor needs the methods before and after; {type(interceptor).__name__} lacks one"
            )
    return interceptors
