"""Loads modules when they are first used: anyio, TLS, and the homes of names that a module re-exports.

The first replies leave without an event loop, and many runs never need one. A module that needs anyio at import time (for a
base class, a decorator) imports it directly.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, final

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

__all__ = ["anyio", "exports", "import_asyncio"]


def exports(module: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the `__getattr__` (PEP 562) of a module, for these names and the modules of this package that define them."""

    def load(name: str) -> Any:
        if name not in homes:
            from .errors.nearest import nearest_hint

            raise AttributeError(f"module {module!r} has no attribute {name!r}{nearest_hint(name, homes)}")
        value = getattr(import_module(f".{homes[name]}", __package__), name)
        setattr(sys.modules[module], name, value)
        return value

    return load


_BACKEND: Final = "anyio._backends._asyncio"
"""What `anyio.run` imports for asyncio."""

_OF_TLS: Final[Mapping[str, tuple[str, ...]]] = {
    "ssl": (),
    "asyncio.sslproto": (),
    "anyio._core._sockets": ("convert_ipv6_sockaddr",),
}
"""The modules that asyncio and anyio's backend import for TLS, with the functions that are imported from them by name."""


def import_asyncio() -> None:
    """Import asyncio, and anyio's backend for it, so that TLS loads when it is first used. It takes 5 MB and 6 ms, and most
    daemons never use it.

    asyncio and the backend hold stand-ins that load the modules of TLS when they are used. Other code that imports these modules
    gets them themselves. If a release of anyio needs more of TLS when it is imported, TLS is loaded here.
    """
    stand_ins: dict[str, ModuleType] = {
        name: _StandIn(name, functions) for name, functions in _OF_TLS.items() if name not in sys.modules
    }
    sys.modules.update(stand_ins)
    try:
        import_module(_BACKEND)
    finally:
        for name, stand_in in stand_ins.items():
            if sys.modules.get(name) is stand_in:
                del sys.modules[name]


@final
class _StandIn(ModuleType):
    """Loads a module when something of it is asked for, or one of these functions is called."""

    def __init__(self, name: str, functions: tuple[str, ...]) -> None:
        super().__init__(name)
        for function in functions:
            setattr(self, function, self._loading(function))

    def __getattr__(self, name: str) -> Any:  # Any: whatever the module has
        if name.startswith("__"):  # what the import system asks for
            raise AttributeError(name)
        if sys.modules.get(self.__name__) is self:
            sys.modules.pop(self.__name__, None)
        return getattr(import_module(self.__name__), name)

    def _loading(self, function: str) -> Callable[..., Any]:
        def call(*args: Any) -> Any:  # Any: those of the function
            return getattr(import_module(self.__name__), function)(*args)

        return call
