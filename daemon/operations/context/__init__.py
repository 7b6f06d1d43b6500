"""The context of a handler, and what it stands on."""

from .context import (
    LAST_EVENT_ID,
    LONGEST_NUMBER,
    MOUNT_DEPTH,
    Context,
    context_backend_of,
    is_answered,
    keep_progress_token,
    last_event_id,
    name_task,
    shown_progress,
)
from .host import NOTHING_SENT, CallFailed, ClientInfo, ClientRefused, ContextBackend, LogLevel, Sending, Stopped

__all__ = [
    "LAST_EVENT_ID",
    "LONGEST_NUMBER",
    "MOUNT_DEPTH",
    "NOTHING_SENT",
    "CallFailed",
    "ClientInfo",
    "ClientRefused",
    "Context",
    "ContextBackend",
    "LogLevel",
    "Sending",
    "Stopped",
    "context_backend_of",
    "is_answered",
    "keep_progress_token",
    "last_event_id",
    "name_task",
    "shown_progress",
]
