"""Makes the store that the setting `store` names. Opens nothing before it is asked to."""

from __future__ import annotations

from ...settings.option import SQLITE
from .interface import TaskStore


def create_store(setting: str) -> TaskStore:
    """A closed store for `memory` or `sqlite:PATH`."""
    if setting.startswith(SQLITE):
        from .sqlite.store import SqliteStore  # late: only daemons with such a store load sqlite3

        return SqliteStore(setting.removeprefix(SQLITE))
    from .memory import MemoryStore

    return MemoryStore()


def verify_store(setting: str) -> None:
    """Open a durable store, create or upgrade its file, and close it. Blocks. Raises `StoreError` if that fails."""
    if setting.startswith(SQLITE):
        from .sqlite.store import SqliteStore  # late, as above

        store = SqliteStore(setting.removeprefix(SQLITE))
        store.open_early()
        store.close_early()
