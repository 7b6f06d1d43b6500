"""Settings: one table, read from flags, the environment and a file."""

from .option import Option, UsageError
from .resolution import Resolved, load, resolve
from .table import OPTIONS, Settings

__all__ = ["OPTIONS", "Option", "Resolved", "Settings", "UsageError", "load", "resolve"]
