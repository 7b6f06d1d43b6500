"""The choices of a session, as ACP writes them and as the store keeps them: its mode, its options, its title. Sends nothing."""

from __future__ import annotations

from typing import Final

from ...a2a.types import JsonObject
from ...agents.editor import AcpOptions, ConfigOption
from .generated import structs
from .sessions import ClientCapabilities, SessionRecord

MODE: Final = "mode"
CONFIG: Final = "config"
TITLE: Final = "title"
"""The members of a message's metadata that hold the session's choices, and its name."""


def modes_of(options: AcpOptions, record: SessionRecord) -> structs.SessionModeState | None:
    """The modes, and which one the session is in; None where the agent has none."""
    if record.mode is None:
        return None
    return structs.SessionModeState(
        current_mode_id=record.mode,
        available_modes=[
            structs.SessionMode(id=mode.id, name=mode.name, description=mode.description) for mode in options.modes
        ],
    )


def config_of(
    options: AcpOptions, record: SessionRecord, capabilities: ClientCapabilities
) -> list[structs.SessionConfigOption] | None:
    """The options with the session's values; None where the agent has none. Clients that know no switches are shown lists."""
    switches = capabilities.shows_switches
    return [_option(option, record.config[option.id], switches) for option in options.config_options] or None


_SWITCH: Final = {"off": "Off", "on": "On"}
"""A switch as a list, for clients that know no switches: the values and their names."""


def value_in(option: ConfigOption, given: str | bool) -> str | bool:
    """The value that a client means, which may have been shown a switch as a list."""
    if not option.choices and given in (*_SWITCH,):
        return given == "on"
    return given


def _option(option: ConfigOption, value: str | bool, switches: bool) -> structs.SessionConfigOption:
    choices = [(each.value, each.name, each.description) for each in option.choices]
    if isinstance(value, bool) and not switches:
        choices, value = [(key, name, None) for key, name in _SWITCH.items()], "on" if value else "off"
    return structs.SessionConfigOption(
        id=option.id,
        name=option.name,
        description=option.description,
        category=None if option.category is None else structs.SessionConfigOptionCategory(option.category),
        type="select" if choices else "boolean",
        current_value=value,
        options=[
            structs.SessionConfigSelectOption(value=key, name=name, description=description)
            for key, name, description in choices
        ]
        or None,
    )


def choices_in(record: SessionRecord) -> JsonObject:
    """Return the choices as members of a message's metadata, which outlive the session in the store."""
    mode = {} if record.mode is None else {MODE: record.mode}
    title = {} if record.title is None else {TITLE: record.title}
    return mode | title | ({CONFIG: dict(record.config)} if record.config else {})


def restore_choices(options: AcpOptions, record: SessionRecord, metadata: JsonObject) -> None:
    """Choose what was chosen when a message with this metadata was sent, as far as the agent still has it."""
    if metadata.get(MODE) in [mode.id for mode in options.modes]:
        record.mode = metadata[MODE]
    given = metadata.get(CONFIG)
    if not isinstance(given, dict):
        return
    for option in options.config_options:
        if isinstance(value := given.get(option.id), str | bool) and option.accepts(value):
            record.config[option.id] = value
