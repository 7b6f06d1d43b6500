"""The store that a setting names."""

from __future__ import annotations

from ...settings.option import SQLITE
from .interface import TaskStore


def store_of(setting: str) -> TaskStore:
    """`memory`, or `sqlite:PATH`. Opens nothing."""
    if setting.startswith(SQLITE):
        from .sqlite.store import SqliteStore  # late: sqlite3 is for those who chose it

        return SqliteStore(setting.removeprefix(SQLITE))
    from .memory import MemoryStore

    return MemoryStore()


def verify(setting: str) -> None:
    """Open what outlives the daemon, and close it. Blocks. Raises `StoreError` where it can't be used."""
    if setting.startswith(SQLITE):
        from .sqlite.store import SqliteStore  # late, as above

        SqliteStore(setting.removeprefix(SQLITE)).verify()
