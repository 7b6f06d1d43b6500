"""What the user is asked before a tool runs: forms, answers, and the sealed state that a client sends back. Asks nobody."""

from __future__ import annotations

import os
from collections.abc import Mapping
from time import time
from typing import Any, Final, final

import msgspec
from msgspec import Raw

from ....errors.exceptions import FailureError
from ....errors.failures import DomainFailure, InvalidParams
from ....errors.type_building import decoder_for
from ...offers import asks_of
from ...operations.service import DeclarationError
from ...operations.spec import OperationSpec
from ...schemas.json_schema import JsonSchema, json_schema

STATE_SECONDS: Final = 600.0
"""How long a client may take to come back with an answer."""

_PRIMITIVES: Final = frozenset({"string", "number", "integer", "boolean"})
_SEAL_BYTES: Final = 32


class Form(msgspec.Struct, frozen=True, rename="camel"):
    """The params of `elicitation/create`."""

    message: str
    requested_schema: dict[str, Any]


class Answer(msgspec.Struct, frozen=True):
    """What the user did with a form."""

    action: str
    content: dict[str, Any] | None = None


def forms_of(spec: OperationSpec) -> dict[str, Form]:
    """The forms that a tool needs, by the param that each one fills."""
    asks = asks_of(spec.input.type)
    hints = getattr(spec.input.type, "__annotations__", {})
    return {name: Form(ask.text, _schema_of(name, hints[name])[0]) for name, ask in asks.items()}


def check_forms(spec: OperationSpec) -> None:
    """Raises `DeclarationError` for a param that no form can fill."""
    for name, form in forms_of(spec).items():
        properties = form.requested_schema["properties"].values()
        if not all(part.get("type") in _PRIMITIVES for part in properties):
            raise DeclarationError(
                f"operation {spec.name}: the user can't be asked for param {name}, since forms have strings, numbers,"
                " booleans and choices of strings only; use one of these, or a struct of them"
            )


def _schema_of(name: str, hint: Any) -> tuple[JsonSchema, bool]:  # Any: an annotation
    """The schema of the form, and whether the param is all of it: that of a struct."""
    schema = {word: part for word, part in json_schema(hint).items() if word not in ("$schema", "title")}
    whole = schema.get("type") == "object" and "properties" in schema
    parts: dict[str, JsonSchema] = schema["properties"] if whole else {name: schema}
    required: list[str] = schema.get("required", []) if whole else [name]
    definitions: dict[str, JsonSchema] = schema.get("$defs", {})
    properties = {key: _primitive(part, definitions) for key, part in parts.items()}
    return {"type": "object", "properties": properties, "required": required}, whole


def _primitive(part: JsonSchema, definitions: Mapping[str, JsonSchema]) -> JsonSchema:
    if "$ref" in part:
        part = {**definitions[part["$ref"].rpartition("/")[2]], **part}
        del part["$ref"]
    if part.get("enum") and all(isinstance(choice, str) for choice in part["enum"]):
        part = {"type": "string", **part}
    return {key: value for key, value in part.items() if not key.startswith("x-")}


def value_of(spec: OperationSpec, name: str, answer: Answer) -> Any:  # Any: JSON
    """The param that an answer gives. Raises `FailureError` where the user gave none."""
    if answer.action != "accept":
        raise FailureError(DomainFailure("DECLINED", "The user did not answer", http_status=403))
    content = answer.content or {}
    whole = _schema_of(name, getattr(spec.input.type, "__annotations__", {})[name])[1]
    return content if whole else content.get(name)


class _State(msgspec.Struct):
    tool: str
    arguments: str
    expires: float
    values: dict[str, Any]


@final
class Seal:
    """Seals what a client keeps for us between two requests, so that it can't be changed. `key` is secret."""

    def __init__(self, key: bytes | None = None) -> None:
        self.key = key or os.urandom(_SEAL_BYTES)

    def close(self, tool: str, arguments: Raw, values: dict[str, Any]) -> str:
        """The text for the client."""
        from base64 import urlsafe_b64encode  # late: most sessions ask nothing

        state = msgspec.json.encode(_State(tool, _digest(arguments), time() + STATE_SECONDS, values))
        return urlsafe_b64encode(self._mark(state) + state).decode()

    def open(self, text: str, tool: str, arguments: Raw) -> dict[str, Any]:
        """The values in it. Raises `FailureError` for a text that was changed, has expired, or is of another call."""
        import hmac  # late, as above
        from base64 import urlsafe_b64decode, urlsafe_b64encode

        try:
            sealed = urlsafe_b64decode(text.encode())
            state = decoder_for(_State)(sealed[_SEAL_BYTES:])
        except (ValueError, msgspec.DecodeError):
            raise _WRONG_STATE from None
        if urlsafe_b64encode(sealed).decode() != text:  # the decoder passes over what is no base64
            raise _WRONG_STATE
        if not hmac.compare_digest(self._mark(sealed[_SEAL_BYTES:]), sealed[:_SEAL_BYTES]):
            raise _WRONG_STATE
        if (state.tool, state.arguments) != (tool, _digest(arguments)) or state.expires < time():
            raise _WRONG_STATE
        return state.values

    def _mark(self, state: bytes) -> bytes:
        import hmac  # late, as above

        return hmac.digest(self.key, state, "sha256")


_WRONG_STATE: Final = FailureError(
    InvalidParams("requestState", "that of the last answer to this call", "another value")
)


def _digest(arguments: Raw) -> str:
    """Of the values, since a client may write them anew."""
    import hashlib  # late, as above

    try:
        canonical = msgspec.json.encode(msgspec.json.decode(arguments), order="deterministic")
    except (msgspec.DecodeError, RecursionError):
        canonical = bytes(arguments)
    return hashlib.sha256(canonical).hexdigest()
