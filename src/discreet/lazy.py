"""anyio, loaded when it is first used: the first replies leave without an event loop, and many runs never need one.

Whoever needs it at import time (a base class, a decorator) imports it directly.
"""

from __future__ import annotations

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

__all__ = ["anyio"]
