"""What the user may choose in a session: modes and options, as ACP writes them; and the methods that set them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...daemon.operations.service import Service
from ...errors.exceptions import FailureError
from ...errors.failures import InvalidParams
from .generated import structs
from .sessions import SessionNotFound

if TYPE_CHECKING:
    from ...a2a.types import JsonObject
    from ...agents.editor import AcpOptions, ConfigOption
    from .sessions import SessionRecord, Sessions


MODE: Final = "mode"
CONFIG: Final = "config"
"""The members of a message's metadata that hold the session's choices."""


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


def config_of(options: AcpOptions, record: SessionRecord) -> list[structs.SessionConfigOption] | None:
    """The options with the session's values; None where the agent has none."""
    return [_option(option, record.config[option.id]) for option in options.config_options] or None


def _option(option: ConfigOption, value: str | bool) -> structs.SessionConfigOption:
    return structs.SessionConfigOption(
        id=option.id,
        name=option.name,
        description=option.description,
        category=None if option.category is None else structs.SessionConfigOptionCategory(option.category),
        type="select" if option.choices else "boolean",
        current_value=value,
        options=[
            structs.SessionConfigSelectOption(value=each.value, name=each.name, description=each.description)
            for each in option.choices
        ]
        or None,
    )


def choices_in(record: SessionRecord) -> JsonObject:
    """Return the user's choices as members of a message's metadata, which outlive the session in the store."""
    mode = {} if record.mode is None else {MODE: record.mode}
    return mode | ({CONFIG: dict(record.config)} if record.config else {})


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


def commands_of(options: AcpOptions) -> list[structs.AvailableCommand]:
    """What the user may type as `/name`."""
    return [
        structs.AvailableCommand(
            name=command.name,
            description=command.description,
            input=None if command.hint is None else structs.UnstructuredCommandInput(hint=command.hint),
        )
        for command in options.commands
    ]


def add_choices(service: Service, options: AcpOptions, sessions: Sessions) -> None:
    """Add `session/set_mode` and `session/set_config_option`."""

    @service.mutation("session/set_mode", inline=True, errors=[SessionNotFound])
    def set_mode(params: structs.SetSessionModeRequest, /) -> structs.SetSessionModeResponse:
        """Change the mode of a session."""
        record = sessions.get(params.session_id).record
        known = tuple(mode.id for mode in options.modes)
        if params.mode_id not in known:
            raise FailureError(InvalidParams("modeId", "one of", "string", known))
        record.mode = params.mode_id
        return structs.SetSessionModeResponse()

    @service.mutation("session/set_config_option", inline=True, errors=[SessionNotFound])
    def set_config_option(params: structs.SetSessionConfigOptionRequest, /) -> structs.SetSessionConfigOptionResponse:
        """Change an option of a session; returns all of them."""
        record = sessions.get(params.session_id).record
        option = next((each for each in options.config_options if each.id == params.config_id), None)
        if option is None:
            known = tuple(each.id for each in options.config_options)
            raise FailureError(InvalidParams("configId", "one of", "string", known))
        if not option.accepts(params.value):
            accepted = tuple(choice.value for choice in option.choices) or (True, False)
            raise FailureError(InvalidParams("value", "one of", _json_type(params.value), accepted))
        record.config[option.id] = params.value
        return structs.SetSessionConfigOptionResponse(config_options=config_of(options, record) or [])


def _json_type(value: str | bool) -> str:
    return "boolean" if isinstance(value, bool) else "string"
