"""Makes the store that the setting `store` names. Opens nothing before it is asked to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ...daemon.memory import MemoryBudget
from ...daemon.settings.option import POSTGRES, REDIS, SQLITE
from .checks import Retention
from .interface import StoreError, TaskStore


def create_store(setting: str, budget: MemoryBudget, retention: Retention) -> TaskStore:
    """A closed store for `memory`, `sqlite:PATH`, `postgresql://…` or `redis://…`. What is in memory counts in the budget.

    Raises `StoreError` for an address that is wrong, and where the extra is missing.
    """
    if setting.startswith(SQLITE):
        from .sqlite.store import SqliteStore  # late: only daemons with such a store load sqlite3

        return SqliteStore(setting.removeprefix(SQLITE), retention)
    if setting.startswith(POSTGRES):
        with _needs("psycopg", extra="postgres"):
            from .postgres.store import PostgresStore  # late, as above
        return PostgresStore(setting, retention)
    if setting.startswith(REDIS):
        with _needs("redis", extra="redis"):
            from .redis.store import RedisStore  # late, as above
        return RedisStore(setting, retention)
    from .memory import MemoryStore, StoreLimits

    return MemoryStore(StoreLimits(retention=retention), budget=budget)


@contextmanager
def _needs(package: str, *, extra: str) -> Iterator[None]:
    """Raises `StoreError` where the block can't import this package."""
    try:
        yield
    except ModuleNotFoundError as exc:
        if exc.name is None or exc.name.partition(".")[0] != package:
            raise
        raise StoreError(f"needs {package}: pip install 'discreet[{extra}]'") from None
