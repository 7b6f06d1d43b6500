"""Loads modules when they are first used: anyio, and the homes of names that a module re-exports.

The first replies leave without an event loop, and many runs never need one. A module that needs anyio at import time (for a
base class, a decorator) imports it directly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import anyio
    import anyio.abc  # pyright: ignore[reportUnusedImport]
    import anyio.lowlevel  # pyright: ignore[reportUnusedImport]
else:

    class _Anyio:
        def __getattr__(self, name: str) -> Any:
            import anyio
            import anyio.lowlevel  # pyright: ignore[reportUnusedImport]

            value = getattr(anyio, name)
            setattr(self, name, value)
            return value

    anyio = _Anyio()

__all__ = ["anyio", "exports"]


def exports(module: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the `__getattr__` (PEP 562) of a module, for these names and the modules of this package that define them."""

    def load(name: str) -> Any:
        if name not in homes:
            from .errors.nearest import nearest_hint

            raise AttributeError(f"module {module!r} has no attribute {name!r}{nearest_hint(name, homes)}")
        import sys
        from importlib import import_module

        value = getattr(import_module(f".{homes[name]}", __package__), name)
        setattr(sys.modules[module], name, value)
        return value

    return load
