"""discreet: a stdio JSON-RPC daemon that answers every request once and lets nothing out that should not leave."""

# Nothing else is imported here: `python -m discreet` reads this file before `__main__` has cleaned the module path.

from .version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .daemon.operations.access import CredentialsRefused, IdentityProvider
    from .daemon.operations.context import CallFailed, ClientRefused, Context, Stopped
    from .daemon.operations.identity import Identity
    from .daemon.operations.service import DeclarationError, Service
    from .daemon.operations.spec import ServerEvent
    from .errors.exceptions import OperationError
    from .imports.from_daemon import from_daemon
    from .imports.from_mcp import from_mcp
    from .imports.from_openapi import from_openapi
    from .serving import serve

__all__ = [
    "CallFailed",
    "ClientRefused",
    "Context",
    "CredentialsRefused",
    "DeclarationError",
    "Identity",
    "IdentityProvider",
    "OperationError",
    "ServerEvent",
    "Service",
    "Stopped",
    "__version__",
    "from_daemon",
    "from_mcp",
    "from_openapi",
    "serve",
]

_HOMES = {
    "CallFailed": ".daemon.operations.context",
    "ClientRefused": ".daemon.operations.context",
    "CredentialsRefused": ".daemon.operations.access",
    "Identity": ".daemon.operations.identity",
    "IdentityProvider": ".daemon.operations.access",
    "Context": ".daemon.operations.context",
    "DeclarationError": ".daemon.operations.service",
    "ServerEvent": ".daemon.operations.spec",
    "OperationError": ".errors.exceptions",
    "Service": ".daemon.operations.service",
    "Stopped": ".daemon.operations.context",
    "from_daemon": ".imports.from_daemon",
    "from_mcp": ".imports.from_mcp",
    "from_openapi": ".imports.from_openapi",
    "serve": ".serving",
}


def __getattr__(name: str) -> "Any":  # PEP 562: a client must not load the daemon for asking the version
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_HOMES[name], __name__), name)
    globals()[name] = value
    return value
