"""The settings of `discreet serve`: one table, and values from flags, the environment and a file."""

from .option import Option as Option
from .option import UsageError as UsageError
from .resolution import Resolved as Resolved
from .resolution import SettingsFile as SettingsFile
from .resolution import resolve_here as resolve_here
from .resolution import resolve_settings as resolve_settings
from .table import OPTIONS as OPTIONS
from .table import Settings as Settings
