"""The settings of `discreet serve`: one table, and values from flags, the environment and a file."""

from .option import Option, UsageError
from .resolution import Resolved, load_settings, resolve_here, resolve_settings
from .sources import SettingsFile
from .table import OPTIONS, Settings

__all__ = [
    "OPTIONS",
    "Option",
    "Resolved",
    "Settings",
    "SettingsFile",
    "UsageError",
    "load_settings",
    "resolve_here",
    "resolve_settings",
]
