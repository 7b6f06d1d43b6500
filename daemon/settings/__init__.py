"""The settings of `discreet serve`: one table, and values from flags, the environment and a file."""

from .option import Option, UsageError
from .resolution import Resolved, SettingsFile, resolve_here, resolve_settings
from .table import OPTIONS, Settings

__all__ = [
    "OPTIONS",
    "Option",
    "Resolved",
    "Settings",
    "SettingsFile",
    "UsageError",
    "resolve_here",
    "resolve_settings",
]
