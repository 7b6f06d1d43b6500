"""What daemons tell each other of their commits: the text of one notification for each. Sends nothing and reads no task.

A notification names the tasks by short hashes, as it holds few bytes. Two tasks with one hash are both taken for changed.
"""

from __future__ import annotations

from base64 import b64encode
from functools import lru_cache
from hashlib import blake2b
from typing import Final, final

from ..change_feed import ChangeFeed
from .rows import to_text

MAX_PAYLOAD: Final = 7999
"""Bytes of a notification that PostgreSQL takes."""

_HASH_BYTES: Final = 6
_HASH_LENGTH: Final = 8  # in base64
_SEPARATOR: Final = ":"
_EVERY_TASK: Final = "*"
_REQUESTS: Final = "r"
_QUEUED: Final = "q"


@lru_cache(maxsize=16_384)  # it is asked for each task that is followed here, with each notification
def name_of(task_id: str) -> str:
    """How a notification names a task."""
    return _hash_of(to_text(task_id))


def _hash_of(text: str) -> str:
    return b64encode(blake2b(text.encode(), digest_size=_HASH_BYTES).digest()).decode()


@final
class Notice:
    """What one transaction has changed. `task_ids` are texts as in the database."""

    def __init__(self) -> None:
        self.task_ids: set[str] = set()
        self.requests = False
        self.queued = False

    def payload(self, base: str) -> str | None:
        """The notification of the daemon whose names begin with `base`; None where nothing has changed."""
        if not (self.task_ids or self.requests or self.queued):
            return None
        flags = _REQUESTS * self.requests + _QUEUED * self.queued
        room = MAX_PAYLOAD - len(base) - len(flags) - 2 * len(_SEPARATOR)
        fits = len(self.task_ids) * _HASH_LENGTH <= room
        return _SEPARATOR.join((base, flags, "".join(map(_hash_of, self.task_ids)) if fits else _EVERY_TASK))


def add_notice(inbox: ChangeFeed, payload: str, base: str) -> None:
    """Add what a notification said, unless the daemon whose names begin with `base` has sent it. One that no daemon of this
    version has sent may mean anything."""
    sender, _, rest = payload.partition(_SEPARATOR)
    if sender == base:
        return
    flags, separator, hashes = rest.partition(_SEPARATOR)
    is_whole = bool(separator) and hashes != _EVERY_TASK and not len(hashes) % _HASH_LENGTH
    inbox.add(
        (hashes[at : at + _HASH_LENGTH] for at in range(0, len(hashes), _HASH_LENGTH)) if is_whole else None,
        requests=not separator or _REQUESTS in flags,
        queued=not separator or _QUEUED in flags,
    )
