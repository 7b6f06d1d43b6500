"""Prompts and commands for a daemon without an `Agent`, whose operations are the skills: `/shop/price {"item": "tea"}`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from ...a2a.types import Part
from ...daemon.operations.spec import OperationSpec
from ...errors.exceptions import FailureError
from ...errors.failures import Failure, InvalidParams
from ...errors.redaction import scrub_known
from .generated.prompts import AvailableCommand, UnstructuredCommandInput

SKILL_PARAMS: Final = 'its params as JSON: {"name": "value"}'
"""What stands behind the name of an operation."""


def skill_parts(parts: Sequence[Part]) -> tuple[Part, ...]:
    """The part that calls a skill, for the text of a prompt: the operation's name, then its params as a JSON object.

    Raises `FailureError(InvalidParams)`.
    """
    text = "\n".join(part.text for part in parts if part.text is not None).strip()
    name, _, params = text.partition(" ")
    call: dict[str, Any] = {"skill": name.removeprefix("/")}
    if params.strip():
        call["input"] = _json(params)
    return (Part(data=call),)


def _json(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise FailureError(InvalidParams("prompt", f"/operation, then {SKILL_PARAMS}", "plain text")) from None


def with_typed_params(failure: Failure) -> Failure:
    """The failure of a prompt that calls a skill, with the params named as the user has typed them."""
    if isinstance(failure, InvalidParams) and failure.param.startswith(_INPUT):
        return replace(failure, param=failure.param.removeprefix(_INPUT).removeprefix(".") or "$")
    return failure


_INPUT: Final = "message.parts[0].data.input"
"""Where the params stand in the message that `skill_parts` makes."""


def skill_commands(operations: Iterable[OperationSpec]) -> list[AvailableCommand]:
    """What the user may type."""
    return [
        AvailableCommand(
            name=spec.name,
            description=scrub_known(spec.description),
            input=UnstructuredCommandInput(hint="JSON: {…}") if spec.input.names else None,
        )
        for spec in operations
    ]
