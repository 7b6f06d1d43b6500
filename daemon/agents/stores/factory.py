"""Makes the store that the setting `store` names. Opens nothing before it is asked to."""

from __future__ import annotations

from ...memory import MemoryBudget
from ...settings.option import SQLITE
from .interface import TaskStore


def create_store(setting: str, budget: MemoryBudget) -> TaskStore:
    """A closed store for `memory` or `sqlite:PATH`. What is in memory counts in the budget."""
    if setting.startswith(SQLITE):
        from .sqlite.store import SqliteStore  # late: only daemons with such a store load sqlite3

        return SqliteStore(setting.removeprefix(SQLITE))
    from .memory import MemoryStore

    return MemoryStore(budget=budget)
