"""What every line has in any form: its head, its end, its priority. And the line for what can't be rendered.

Needs neither structlog nor the scrubber, so that it works when they don't.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Final

from .levels import LEVELS
from .queue import Event
from .sink import Form

_MAX_WORD: Final = 64

_PRIORITY: Final = {10: "<7>", 20: "<6>", 30: "<4>", 40: "<3>"}
"""sd-daemon(3): debug, info, warning, err."""


def head(event: Event) -> dict[str, str]:
    """When (ISO 8601 in UTC, milliseconds), how grave, what: the first three fields of every line."""
    when = datetime.fromtimestamp(event.when, UTC).isoformat(timespec="milliseconds")
    return {"timestamp": when.removesuffix("+00:00") + "Z", "level": LEVELS[event.rank], "event": event.name}


def finished(text: str, form: Form, event: Event) -> bytes:
    """The bytes of a line whose text is rendered: priority, text, line end, in UTF-8 whatever the text holds."""
    priority = _PRIORITY[event.rank] if form == "journald" else ""
    return f"{priority}{text}\n".encode("utf-8", "backslashreplace")


def minimal_line(event: Event, form: Form, fault: BaseException) -> bytes:
    """The line for an event that can't be rendered: none of its fields, only that it was and why they are missing."""
    entry = {**head(event), "event": word(event.name), "unrendered": word(type(fault).__name__)}
    text = json.dumps(entry) if form == "json" else " ".join(f"{key}={value}" for key, value in entry.items())
    return finished(text, form, event)


def word(text: str) -> str:
    """`text` as a name that needs no quoting in any form: ASCII letters, digits, `_`, `.` and `-`, cut to 64."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", text[:_MAX_WORD]) or "_"
