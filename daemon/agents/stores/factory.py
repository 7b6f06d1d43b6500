"""Makes the store that the setting `store` names. Opens nothing before it is asked to."""

from __future__ import annotations

from ...memory import MemoryBudget
from ...settings.option import POSTGRES, SQLITE
from .interface import StoreError, TaskStore


def create_store(setting: str, budget: MemoryBudget) -> TaskStore:
    """A closed store for `memory`, `sqlite:PATH` or `postgresql://…`. What is in memory counts in the budget.

    Raises `StoreError` for an address that is wrong, and where the extra is missing.
    """
    if setting.startswith(SQLITE):
        from .sqlite.store import SqliteStore  # late: only daemons with such a store load sqlite3

        return SqliteStore(setting.removeprefix(SQLITE))
    if setting.startswith(POSTGRES):
        try:
            from .postgres.store import PostgresStore  # late, as above
        except ModuleNotFoundError as exc:
            if exc.name is None or not exc.name.startswith("psycopg"):
                raise
            raise StoreError("needs psycopg: pip install 'discreet[postgres]'") from None
        return PostgresStore(setting)
    from .memory import MemoryStore

    return MemoryStore(budget=budget)
