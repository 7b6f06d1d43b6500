"""The open file: its connections, the lock of this daemon, and what watches that the file stays the same. Reads no task."""

from __future__ import annotations

import sqlite3
from contextlib import ExitStack, closing, suppress
from typing import final

from ..interface import StoreError
from . import statements
from .busy import BusyWait
from .files import StoreFiles
from .owner_locks import OwnerLock
from .schema import connect, open_writer, translate_errors


@final
class Connections:
    """Opens the file. Raises `StoreError`, and then leaves nothing open."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.busy = BusyWait()
        with translate_errors(path), ExitStack() as stack:
            self.writer = stack.enter_context(closing(open_writer(path)))
            self.reader = stack.enter_context(closing(connect(path)))
            self.loop_reader = stack.enter_context(closing(connect(path, busy_seconds=0)))
            self.reader.execute("PRAGMA query_only = ON")
            self.owner_lock = OwnerLock(path)
            stack.callback(self.owner_lock.release)
            self.busy.run(lambda: statements.insert_daemon(self.writer, self.owner_lock.owner_id))
            self._files = StoreFiles(path)
            self._stack = stack.pop_all()

    def check_files(self) -> None:
        """Before a commit. Raises `StoreError` if a file was removed or replaced."""
        try:
            self._files.check()
        except StoreError:
            self._save_log()
            raise

    def check_commit(self) -> None:
        """After a commit, before it is acknowledged. Raises `StoreError` if it would be lost with this process."""
        try:
            self._files.check_commit()
        except StoreError:
            self._save_log()
            raise

    def _save_log(self) -> None:
        """If only the log was removed, bring what it holds into the store's file: all of it was acknowledged."""
        if self._files.only_log_removed:
            with suppress(sqlite3.Error):
                self.writer.execute("PRAGMA wal_checkpoint(FULL)")

    def close(self) -> None:
        """Waits for other processes as long as `busy` says. If they take longer, they find out that this daemon is gone."""
        with self._stack, translate_errors(self.path):
            self.busy.run(lambda: statements.delete_own_daemon(self.writer, self.owner_lock.owner_id))
