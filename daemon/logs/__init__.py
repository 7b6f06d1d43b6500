"""The daemon's own logs: events with fields, to stderr or a file, never to stdout, scrubbed and never in the way."""

from .hooks import install_hooks, install_logging, install_structlog, loop_exception_handler, uninstall_hooks
from .levels import AnyLevel, Level, parse_level
from .logger import Logger, log
from .sink import LogSettings
from .writer import FLUSH_SECONDS, Logs, start, stray

__all__ = [
    "FLUSH_SECONDS",
    "AnyLevel",
    "Level",
    "LogSettings",
    "Logger",
    "Logs",
    "install_hooks",
    "install_logging",
    "install_structlog",
    "log",
    "loop_exception_handler",
    "parse_level",
    "start",
    "stray",
    "uninstall_hooks",
]
