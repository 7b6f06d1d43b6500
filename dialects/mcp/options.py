"""Checks the `options=` of a tool, a resource or a prompt: members that MCP has beside its types, and what MCP Apps adds, which
links a tool to its page. Lists nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar, get_args, get_type_hints

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from ...daemon.declarations import Foreign, Resource, variables_of
from ...daemon.operations.service import DeclarationError
from ...daemon.operations.spec import OperationSpec
from ...errors.decoders import convert
from ...errors.nearest import nearest_hint
from .generated.apps import McpUiResourceMeta, McpUiToolMeta
from .generated.structs import Annotations, Icon, ToolAnnotations
from .revision import APP_SCHEME, APP_TYPE


class PromptOptions(Struct, rename="camel", frozen=True, kw_only=True):
    """Members of a prompt that `options=` sets."""

    icons: list[Icon] | None = None
    meta: dict[str, Any] | None = field(default=None, name="_meta")  # Any: JSON


class ToolOptions(PromptOptions, rename="camel", frozen=True, kw_only=True):
    """Members of a tool that `options=` sets."""

    title: str | None = None
    annotations: ToolAnnotations | None = None
    ui: McpUiToolMeta | None = None


class ResourceOptions(PromptOptions, rename="camel", frozen=True, kw_only=True):
    """Members of a resource or a template that `options=` sets."""

    annotations: Annotations | None = None
    ui: McpUiResourceMeta | None = None


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
        given = _with_ui(given)
        _check_names(given, kind, "")
        found: Options = convert(given, kind)
    except (TypeError, ValueError, RecursionError) as exc:  # `ValidationError` is a `ValueError`
        from ..lsp.generated.tables import NOTIFICATIONS, REQUESTS  # late: only wrong options need it

        if spec.name in REQUESTS or spec.name in NOTIFICATIONS:
            return kind()
        raise DeclarationError(f"operation {spec.name}: options: {exc}") from None
    return found


def _with_ui(given: dict[str, Any]) -> dict[str, Any]:
    """Options with `_meta.ui`, where MCP Apps has it on the wire, as `ui`."""
    meta = given.get("_meta")
    if not isinstance(meta, dict) or "ui" not in meta:
        return given
    if "ui" in given:
        raise TypeError("ui and _meta.ui are the same; keep one of them")
    return {**given, "ui": meta["ui"], "_meta": {name: value for name, value in meta.items() if name != "ui"} or None}


def ui_of_tool(spec: OperationSpec) -> McpUiToolMeta | None:
    """What MCP Apps says of a tool. The page of another server's tool has the URI by which clients here know it.

    Raises `DeclarationError` for wrong options.
    """
    if not isinstance(spec.options, Foreign):
        return options_of(spec, ToolOptions).ui
    tool = spec.options.tool()
    if tool is None or not tool.ui:
        return None
    ui: McpUiToolMeta = convert(tool.ui, McpUiToolMeta)
    return ui if ui.resource_uri is None else replace(ui, resource_uri=spec.options.server.uri(ui.resource_uri))


def meta_of_ui(ui: McpUiToolMeta | McpUiResourceMeta | None) -> dict[str, Any]:
    """The member `ui` of `_meta`; nothing where there is none."""
    return {} if ui is None else {"ui": msgspec.to_builtins(ui)}


def mime_type_of(offer: Resource) -> str | None:
    """The media type of a resource. A page of an app has the one that the extension demands."""
    return offer.mime_type or (APP_TYPE if offer.uri.startswith(APP_SCHEME) else None)


def check_page(spec: OperationSpec, offer: Resource, options: ResourceOptions) -> None:
    """Check what MCP Apps demands of a resource.

    Raises `DeclarationError` for `ui` where it is no page, for a page that is no HTML, and for a permission with members.
    """
    if not offer.uri.startswith(APP_SCHEME):
        if options.ui is not None:
            raise DeclarationError(
                f"operation {spec.name}: options: ui is for resources of {APP_SCHEME}; its URI is {offer.uri}"
            )
        return
    if mime_type_of(offer) != APP_TYPE:
        raise DeclarationError(f"operation {spec.name}: a resource of {APP_SCHEME} is {APP_TYPE}; leave mime_type out")
    if spec.returns not in (str, bytes):
        raise DeclarationError(
            f"operation {spec.name}: a resource of {APP_SCHEME} is HTML; its handler must return str or bytes"
        )
    permissions = None if options.ui is None else options.ui.permissions
    for name, value in () if permissions is None else msgspec.to_builtins(permissions).items():
        if value:
            raise DeclarationError(f"operation {spec.name}: options: ui.permissions.{name} must be an empty object")


def check_link(spec: OperationSpec, uri: str, pages: Iterable[str]) -> None:
    """Raises `DeclarationError` for a tool whose page is none of these (URIs and templates)."""
    if any(page == uri or ("{" in page and variables_of(page, uri) is not None) for page in pages):
        return
    raise DeclarationError(
        f"operation {spec.name}: options: ui.resourceUri must be a resource of {APP_SCHEME} that is hosted here, such as"
        f' @service.resource("{APP_SCHEME}{spec.name}"), not {uri!r}'
    )


def _check_names(given: dict[str, Any], kind: type[Struct], where: str) -> None:
    known = kind.__struct_encode_fields__
    for name in given.keys() - set(known):
        raise TypeError(f"there is no {where}{name}{nearest_hint(name, known)}; MCP has {', '.join(known)}")
    hints = get_type_hints(kind)
    for attribute, name in zip(kind.__struct_fields__, known, strict=True):
        inner = next((each for each in get_args(hints[attribute]) if isinstance(each, type)), None)
        if inner is not None and issubclass(inner, Struct) and isinstance(given.get(name), dict):
            _check_names(given[name], inner, f"{where}{name}.")
