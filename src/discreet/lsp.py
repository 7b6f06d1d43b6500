"""Language servers: LSP 3.17's structures (`lsp.Hover`), its errors, and the editor. Loads a name's module on first use.

What authors may rely on stands in `discreet.dialects.structs`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .dialects.lsp.generated.names import HOMES as _HOMES

_OURS = {
    "Editor": "dialects.lsp.editor",
    "Progress": "dialects.lsp.editor",
    "ContentModified": "dialects.lsp.dialect",
    "ServerCancelled": "dialects.lsp.dialect",
    "TextDocument": "daemon.documents",
}

if TYPE_CHECKING:
    from .daemon.documents import TextDocument as TextDocument  # noqa: PLC0414 - exported
    from .dialects.lsp.dialect import ContentModified as ContentModified  # noqa: PLC0414 - exported
    from .dialects.lsp.dialect import ServerCancelled as ServerCancelled  # noqa: PLC0414 - exported
    from .dialects.lsp.editor import Editor as Editor  # noqa: PLC0414 - exported
    from .dialects.lsp.editor import Progress as Progress  # noqa: PLC0414 - exported
    from .dialects.lsp.generated.every_name import *  # noqa: F403
else:  # a checker that saw this would take any name for one of LSP's

    def __getattr__(name: str) -> Any:
        """PEP 562: to define four hundred classes takes longer than a server has for its first answer."""
        home = _OURS[name] if name in _OURS else f"dialects.lsp.generated.{_HOMES[name]}" if name in _HOMES else None
        if home is None:
            from .errors.nearest import nearest_hint

            raise AttributeError(f"module {__name__!r} has no attribute {name!r}{nearest_hint(name, __dir__())}")
        from importlib import import_module

        value = getattr(import_module(f".{home}", __package__), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*_HOMES, *_OURS})
