"""The daemon's own logs: scrubbed events with fields, to stderr or a file, never to stdout, never blocking a caller."""

from .hooks import PrintedTexts as PrintedTexts
from .hooks import capture_logging as capture_logging
from .hooks import capture_structlog as capture_structlog
from .hooks import install_hooks as install_hooks
from .hooks import log_stray_output as log_stray_output
from .hooks import loop_exception_handler as loop_exception_handler
from .hooks import uninstall_hooks as uninstall_hooks
from .logger import AnyLevel as AnyLevel
from .logger import ConfiguredPath as ConfiguredPath
from .logger import Level as Level
from .logger import Logger as Logger
from .logger import RepeatedWarning as RepeatedWarning
from .logger import log as log
from .logger import parse_level as parse_level
from .sink import LogSettings as LogSettings
from .writer import LogWriter as LogWriter
from .writer import start_logging as start_logging
