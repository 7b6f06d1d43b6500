"""Checks the `options=` of a tool, a resource or a prompt: members that MCP has beside its types. Lists nothing."""

from __future__ import annotations

from typing import Any, TypeVar, get_args, get_type_hints

import msgspec
from msgspec import Struct, field

from ...daemon.declarations import Foreign
from ...daemon.operations.service import DeclarationError
from ...daemon.operations.spec import OperationSpec
from ...errors.decoders import convert
from ...errors.nearest import nearest_hint
from .generated.structs import Annotations, Icon, ToolAnnotations


class PromptOptions(Struct, rename="camel", frozen=True, kw_only=True):
    """Members of a prompt that `options=` sets."""

    icons: list[Icon] | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")  # Any: JSON


class ToolOptions(PromptOptions, rename="camel", frozen=True, kw_only=True):
    """Members of a tool that `options=` sets."""

    title: str | None = None
    annotations: ToolAnnotations | None = None


class ResourceOptions(PromptOptions, rename="camel", frozen=True, kw_only=True):
    """Members of a resource or a template that `options=` sets."""

    annotations: Annotations | None = None


Options = TypeVar("Options", bound=PromptOptions)


def options_of(spec: OperationSpec, kind: type[Options]) -> Options:
    """The options of an operation as members of this kind. Raises `DeclarationError` for what they can't have.

    Those of another server's tool say nothing here, and neither do those of a method of LSP.
    """
    if spec.options is None or isinstance(spec.options, Foreign):
        return kind()
    try:
        given = msgspec.to_builtins(spec.options)
        if not isinstance(given, dict):
            raise TypeError("they must be a dict of MCP's members")
        _check_names(given, kind, "")
        found: Options = convert(given, kind)
    except (TypeError, ValueError, RecursionError) as exc:  # `ValidationError` is a `ValueError`
        from ..lsp.generated.tables import NOTIFICATIONS, REQUESTS  # late: only wrong options need it

        if spec.name in REQUESTS or spec.name in NOTIFICATIONS:
            return kind()
        raise DeclarationError(f"operation {spec.name}: options: {exc}") from None
    return found


def _check_names(given: dict[str, Any], kind: type[Struct], where: str) -> None:
    known = kind.__struct_encode_fields__
    for name in given.keys() - set(known):
        raise TypeError(f"there is no {where}{name}{nearest_hint(name, known)}; MCP has {', '.join(known)}")
    hints = get_type_hints(kind)
    for attribute, name in zip(kind.__struct_fields__, known, strict=True):
        inner = next((each for each in get_args(hints[attribute]) if isinstance(each, type)), None)
        if inner is not None and issubclass(inner, Struct) and isinstance(given.get(name), dict):
            _check_names(given[name], inner, f"{name}.")
