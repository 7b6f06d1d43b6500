"""The parts of a log line that all forms share, and the line for an event that can't be rendered.

Does not need the scrubber, so that it works when that fails.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Final

from .logger import LEVELS, LogEvent
from .sink import Form

_MAX_NAME: Final = 64

_PRIORITY: Final = {10: "<7>", 20: "<6>", 30: "<4>", 40: "<3>"}
"""sd-daemon(3): debug, info, warning, err."""


def standard_fields(event: LogEvent) -> dict[str, str]:
    """The first three fields of every line: time (ISO 8601 in UTC, milliseconds), level, event."""
    when = datetime.fromtimestamp(event.when, UTC).isoformat(timespec="milliseconds")
    return {"timestamp": when.removesuffix("+00:00") + "Z", "level": LEVELS[event.rank], "event": event.name}


def encode_line(text: str, form: Form, event: LogEvent) -> bytes:
    """The bytes of a rendered line: priority, text and line end, in UTF-8 whatever the text holds."""
    priority = _PRIORITY[event.rank] if form == "journald" else ""
    return f"{priority}{text}\n".encode("utf-8", "backslashreplace")


def fallback_line(event: LogEvent, form: Form, fault: BaseException) -> bytes:
    """The line for an event that can't be rendered: without its fields, but with the type of the exception."""
    entry = {
        **standard_fields(event),
        "event": safe_name(event.name),
        "unrendered": safe_name(type(fault).__name__),
    }
    text = json.dumps(entry) if form == "json" else " ".join(f"{key}={value}" for key, value in entry.items())
    return encode_line(text, form, event)


def safe_name(text: str) -> str:
    """`text` as a name that needs no quotes in any form: ASCII letters, digits, `_`, `.` and `-`, at most 64."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", text[:_MAX_NAME]) or "_"
