"""What an agent declares for editors beside its card: modes, options, commands, ways to sign in. Holds data, checks it, runs
nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Literal, TypeAlias, TypeVar

import msgspec
from msgspec import to_builtins

from ..errors.decoders import convert

Item = TypeVar("Item", bound=msgspec.Struct)

ConfigCategory: TypeAlias = Literal["mode", "model", "model_config", "thought_level"]


class Mode(msgspec.Struct, frozen=True):
    """A way in which the agent may work in a session, such as `ask` and `code`."""

    id: str
    name: str
    description: str | None = None


class Choice(msgspec.Struct, frozen=True):
    """One value of a `ConfigOption`."""

    value: str
    name: str
    description: str | None = None


class ConfigOption(msgspec.Struct, frozen=True, kw_only=True):
    """Something that the user may set in a session. With `choices` it is a list, whose first value is the default; without,
    a switch, which is `default`.
    """

    id: str
    name: str
    choices: tuple[Choice, ...] = ()
    default: bool = False
    description: str | None = None
    category: ConfigCategory | None = None

    @property
    def initial(self) -> str | bool:
        """The value in a new session."""
        return self.choices[0].value if self.choices else self.default

    def accepts(self, value: str | bool) -> bool:
        """Whether the user may set this value."""
        if not self.choices:
            return isinstance(value, bool)
        return any(choice.value == value for choice in self.choices)


class Command(msgspec.Struct, frozen=True):
    """What the user may type as `/name`. The executor gets it as text. `hint` says what may follow."""

    name: str
    description: str
    hint: str | None = None


class AuthMethod(msgspec.Struct, frozen=True):
    """A way to sign in, which the editor shows when the agent has answered that it needs one."""

    id: str
    name: str
    description: str | None = None


class AcpOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent declares for clients of the Agent Client Protocol: `Agent(…, acp=AcpOptions(modes=[…]))`.

    The first mode is that of a new session. `authenticate` is awaited with the id of the method that the user has chosen; it
    raises a declared `OperationError`, or any other exception, where that fails.
    """

    modes: tuple[Mode, ...] = ()
    config_options: tuple[ConfigOption, ...] = ()
    commands: tuple[Command, ...] = ()
    auth_methods: tuple[AuthMethod, ...] = ()
    authenticate: Callable[[str], Awaitable[None]] | None = None


def checked_acp_options(given: object) -> AcpOptions:
    """The options, with tuples for what was given as a list. Raises `TypeError` or `ValueError`."""
    if given is None:
        return AcpOptions()
    if not isinstance(given, AcpOptions):
        raise TypeError(f"acp must be AcpOptions(…), not {type(given).__name__}")
    options = AcpOptions(
        modes=_items("modes", given.modes, Mode),
        config_options=_items("config_options", given.config_options, ConfigOption),
        commands=_items("commands", given.commands, Command),
        auth_methods=_items("auth_methods", given.auth_methods, AuthMethod),
        authenticate=given.authenticate,
    )
    _check_unique("mode", (mode.id for mode in options.modes))
    _check_unique("config option", (option.id for option in options.config_options))
    _check_unique("command", (command.name for command in options.commands))
    _check_unique("auth method", (method.id for method in options.auth_methods))
    if options.authenticate is not None and not callable(options.authenticate):
        raise TypeError("acp: authenticate must be an `async def` that takes the id of an auth method")
    return options


def _items(name: str, given: Iterable[Item], kind: type[Item]) -> tuple[Item, ...]:
    items = tuple(given)
    for item in items:
        if not isinstance(item, kind):
            raise TypeError(f"acp: {name} holds {kind.__name__} objects, not {type(item).__name__}")
    return tuple(convert(to_builtins(item), kind) for item in items)


def _check_unique(what: str, ids: Iterable[str]) -> None:
    seen: set[str] = set()
    for each in ids:
        if each in seen:
            raise ValueError(f"acp: {what} {each!r} is declared twice")
        seen.add(each)
