"""Turns what redis-py and the server say into `StoreError`, one line each, without data and without secrets. Retries nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import redis
from redis import exceptions

from ....errors.printable import cut, printable
from ....errors.redaction import scrub_known
from ..failures import DamagedRecordError, damaged_task_error
from ..interface import StoreError, StoreUnavailableError

_MAX_REASON: Final = 300
"""Characters of what is said of a refused connection."""

NO_STORE: Final = "NOSTORE"
"""Error code of our own scripts: the store is not there any more, as after a restart of a server that keeps nothing."""

DAMAGED: Final = "DAMAGED"
"""Error code of our own scripts: keys that all tasks share hold something else."""

SUPERSEDED: Final = "SUPERSEDED"
"""Error code of our own scripts: a later transaction of this daemon has been made."""

_SHARED: Final = "the keys store, counts, owners, ended or wake"

_TEXTS: Final = {
    "BUSY": "is busy with a script of another program",
    "CROSSSLOT": "does not take the keys of one store in one script",
    "MISCONF": "can't be written to: it can't write to its own disk",
    "NOAUTH": "can't be used: it needs a password",
    "NOPERM": "can't be used: its user may not run the commands that a store needs",
    "OOM": "can't grow: its memory is full (maxmemory)",
    "WRONGTYPE": "holds something else under the keys of a store",
    NO_STORE: "holds no store of this version of discreet any more",
    DAMAGED: f"is damaged: {_SHARED} are not as they were written; restore it from a backup, or delete all its keys",
    SUPERSEDED: "holds a later change of this daemon",
}
"""By error code."""

_PASSING: Final = frozenset({"BUSY", "MISCONF", "OOM"})
"""Errors that may be gone with the next attempt."""

_ENDED: Final = frozenset(
    {"ASK", "BUSY", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "MOVED", "NOREPLICAS", "READONLY", "TRYAGAIN", NO_STORE}
)
"""After these a connection is of no use, even if it is still open: the server, or its part in a cluster, has changed."""

_CODES: Final = (
    (exceptions.AskError, "ASK"),  # before its base class
    (exceptions.MovedError, "MOVED"),
    (exceptions.ClusterDownError, "CLUSTERDOWN"),
    (exceptions.ClusterCrossSlotError, "CROSSSLOT"),
    (exceptions.MasterDownError, "MASTERDOWN"),
    (exceptions.TryAgainError, "TRYAGAIN"),
    (exceptions.ReadOnlyError, "READONLY"),
    (exceptions.NoPermissionError, "NOPERM"),
    (exceptions.NoScriptError, "NOSCRIPT"),
    (exceptions.OutOfMemoryError, "OOM"),
)
"""redis-py takes the code off the text of these."""

_code: Final = re.compile(r"(?:\A|[:\s]-)([A-Z]{2,})\b")
"""At the beginning; servers before Redis 7 give the code of what failed in a script somewhere behind."""


def code_of(exc: redis.ResponseError) -> str:
    """The code of the server's error, as `OOM`; `ERR` if it has no better one."""
    for kind, code in _CODES:
        if isinstance(exc, kind):
            return code
    text = str(exc)
    if "ACL failure" in text or "can't run this command" in text or "can't access" in text:  # of a script's user
        return "NOPERM"
    codes: list[str] = [code for code in _code.findall(text) if code != "ERR"]
    return codes[0] if codes else "ERR"


def ends_connection(exc: redis.RedisError) -> bool:
    """Whether the connection is lost with this error, or of no use any more."""
    return not isinstance(exc, redis.ResponseError) or code_of(exc) in _ENDED


@contextmanager
def translate_errors(label: str) -> Iterator[None]:
    """`label` names the database."""
    try:
        yield
    except redis.ResponseError as exc:
        raise store_error(label, exc) from None  # the text may hold data
    except redis.RedisError as exc:
        raise StoreError(f"{label} can't be used: {type(exc).__name__}") from None
    except DamagedRecordError as exc:
        raise damaged_task_error(label, exc) from exc


def store_error(label: str, exc: redis.ResponseError) -> StoreError:
    code = code_of(exc)
    error = StoreUnavailableError if code in _PASSING else StoreError
    return error(f"{label} {_TEXTS.get(code, f'can not be used: {code}')}")


def why_not_connected(exc: Exception) -> str:
    """Why there is no connection, in one line, without the password."""
    if isinstance(exc, StoreError):
        return str(exc)
    if "WRONGPASS" in str(exc) or "invalid username-password" in str(exc):
        return "the user or the password is wrong"
    if "without any password" in str(exc):
        return "the server has no password, and the address has one"
    if isinstance(exc, redis.AuthenticationError):
        return "the server needs a password"
    if isinstance(exc, redis.InvalidResponse) or "Protocol Error" in str(exc):
        return "what answers is not Redis"
    if isinstance(exc, redis.ResponseError) and code_of(exc) in _TEXTS:
        return f"the server {_TEXTS[code_of(exc)]}"
    return cut(printable(scrub_known(" ".join(str(exc).split()) or type(exc).__name__)), _MAX_REASON)
