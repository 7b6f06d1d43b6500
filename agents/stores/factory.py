"""Makes the store that the setting `store` names. Opens nothing before it is asked to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from ...daemon import plugins
from ...daemon.memory import MemoryBudget
from ...daemon.settings.option import MEMORY, SQLITE
from .checks import DEFAULT_RETENTION, Retention
from .interface import StoreError, TaskStore

if TYPE_CHECKING:
    from .threaded_store import StoreReader


_LIBRARIES: Final = {
    **dict.fromkeys(("postgresql", "postgres"), ("psycopg", "postgres")),
    **dict.fromkeys(("redis", "rediss", "unix"), ("redis", "redis")),
}
"""The needs of a store: a package, and the extra that installs it."""


def create_store(setting: str, budget: MemoryBudget, retention: Retention) -> TaskStore:
    """A closed store for `memory`, `sqlite:PATH`, `postgresql://…`, `redis://…`, or for `NAME:…` of an installed package. What
    is in memory counts in the budget.

    Raises `StoreError` for an address that is wrong, where the extra is missing, and where the package can't be loaded.
    """
    name = setting.partition(":")[0]
    if name == MEMORY:
        from .memory import MemoryStore, StoreLimits  # late: of the stores, one loads

        return MemoryStore(StoreLimits(retention=retention), budget=budget)
    with _needs(*_LIBRARIES.get(name, ("", ""))):
        try:
            factory = plugins.load("store", name)
        except plugins.PluginError as exc:
            raise StoreError(str(exc)) from exc
    store: TaskStore = factory(setting.removeprefix(SQLITE), retention)
    return store


def open_reader(setting: str) -> StoreReader[Any]:  # Any: what it reads from
    """Open the durable store that a setting names, to read it from outside. Blocks. Raises `StoreError`, also for a store of an
    installed package that can't be read so."""
    store: Any = create_store(setting, MemoryBudget(0), DEFAULT_RETENTION)  # Any: not every store can be read so
    if not hasattr(store, "open_reader"):
        raise StoreError(f"{setting.partition(':')[0]} is no store that can be read from outside the daemon")
    reader: StoreReader[Any] = store.open_reader()
    return reader


@contextmanager
def _needs(package: str, extra: str) -> Iterator[None]:
    """Raises `StoreError` where the block can't import this package."""
    try:
        yield
    except ModuleNotFoundError as exc:
        if exc.name is None or exc.name.partition(".")[0] != package:
            raise
        raise StoreError(f"needs {package}: pip install 'discreet[{extra}]'") from None
