"""The context of a handler, and what it stands on."""

from .context import Context, host_of, is_answered, keep_progress_token, shown_progress
from .host import NOTHING_SENT, CallFailed, ClientInfo, ClientRefused, ContextHost, LogLevel, Sending, Stopped

__all__ = [
    "NOTHING_SENT",
    "CallFailed",
    "ClientInfo",
    "ClientRefused",
    "Context",
    "ContextHost",
    "LogLevel",
    "Sending",
    "Stopped",
    "host_of",
    "is_answered",
    "keep_progress_token",
    "shown_progress",
]
