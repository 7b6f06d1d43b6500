"""The structures of LSP 3.17: `from discreet import lsp`, then `lsp.Hover`. Defines nothing; loads a name's module on first use.

What authors may rely on stands in `discreet.daemon.dialects.structs`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .daemon.dialects.lsp.generated.names import HOMES as _HOMES

if TYPE_CHECKING:
    from .daemon.dialects.lsp.generated.every_name import *  # noqa: F403
else:  # a checker that saw this would take any name for one of LSP's

    def __getattr__(name: str) -> Any:
        """PEP 562: to define four hundred classes takes longer than a server has for its first answer."""
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        value = getattr(import_module(f".daemon.dialects.lsp.generated.{_HOMES[name]}", __package__), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted(_HOMES)
