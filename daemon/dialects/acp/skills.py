"""Prompts and commands for a daemon without an `Agent`, whose operations are the skills: `/shop/price {"item": "tea"}`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from ....errors.exceptions import FailureError
from ....errors.failures import InvalidParams
from ....errors.redaction import scrub_known
from ...agents.model.types import Part
from ...operations.spec import OperationSpec
from .generated.prompts import AvailableCommand, UnstructuredCommandInput


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
        raise FailureError(
            InvalidParams("prompt", "the name of an operation, then its params as JSON", "string")
        ) from None


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
