"""The daemon's own logs: scrubbed events with fields, to stderr or a file, never to stdout, never blocking a caller."""

from .hooks import capture_logging, capture_structlog, install_hooks, loop_exception_handler, uninstall_hooks
from .levels import AnyLevel, Level, parse_level
from .logger import ConfiguredPath, Logger, log
from .repeated import RepeatedWarning
from .sink import LogSettings
from .stray_output import PrintedTexts, log_stray_output
from .writer import LogWriter, start_logging

__all__ = [
    "AnyLevel",
    "ConfiguredPath",
    "Level",
    "LogSettings",
    "LogWriter",
    "Logger",
    "PrintedTexts",
    "RepeatedWarning",
    "capture_logging",
    "capture_structlog",
    "install_hooks",
    "log",
    "log_stray_output",
    "loop_exception_handler",
    "parse_level",
    "start_logging",
    "uninstall_hooks",
]
