"""Turns what psycopg and libpq raise into `StoreError`, one line each, without secrets. Retries nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import psycopg

from ....errors.printable import cut, printable
from ....errors.redaction import scrub_known
from ..failures import DamagedRecordError, damaged_task_error
from ..interface import StoreError, StoreUnavailableError

_MAX_REASON: Final = 300
"""Characters of what the server or libpq says when it refuses a connection."""

_TEXTS: Final = {
    "25006": "can't be written to: the server is read-only",
    "42501": "can't be used: the role lacks a privilege",
    "42P01": "is not a store of this version of discreet: a table is missing; restore it from a backup",
    "42703": "is not a store of this version of discreet: a column is missing; restore it from a backup",
    "53100": "can't grow: the server's disk is full",
    "53200": "can't be used: the server has no memory left",
    "55P03": "is locked by another program",
    "57014": "took too long",
    "XX001": "is a damaged database",
    "XX002": "is a damaged database",
}
"""By SQLSTATE."""

_PASSING: Final = frozenset({"53100", "53200", "55P03", "57014"})
"""Errors that may be gone with the next attempt."""

RETRIED: Final = (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected, psycopg.errors.UniqueViolation)
"""What a transaction meets only because another daemon's went on at the same time."""


@contextmanager
def translate_errors(label: str) -> Iterator[None]:
    """`label` names the database."""
    try:
        yield
    except psycopg.Error as exc:
        state = exc.sqlstate
        text = _TEXTS.get(state or "", f"can't be used: {state or type(exc).__name__}")
        error = StoreUnavailableError if state in _PASSING else StoreError
        raise error(f"{label} {text}") from None  # psycopg's own text may repeat a row
    except DamagedRecordError as exc:
        raise damaged_task_error(label, exc) from exc


def why_not_connected(exc: psycopg.Error) -> str:
    """What libpq says about its last attempt, in one line: whom it asked, and the server's words. It repeats no password."""
    lines = [line for line in str(exc).splitlines() if line.strip()] or [type(exc).__name__]
    reasons = [line for line in lines if "FATAL:" in line or "failed:" in line or "error:" in line]
    reason = (reasons or lines)[-1].rpartition("FATAL:")[2].removeprefix("connection failed: ")
    return cut(printable(scrub_known(" ".join(reason.split()))), _MAX_REASON)
