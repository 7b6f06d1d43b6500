"""The PostgreSQL store behind PgBouncer: in its session mode as without it, in its transaction mode refused in one line."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

import anyio
import pytest

from discreet.agents.stores.interface import StoreError
from support.postgres import Server, as_server, free_port
from support.requirements import missing
from support.sqlite_files import opened
from support.task_changes import a_task, change, said
from support.waits import DEADLINE_SECONDS, until, wait_until

pytestmark = pytest.mark.anyio


@contextmanager
def pooled(server: Server, mode: str, url: str) -> Iterator[str]:
    """The address of a database behind a pooler."""
    program = shutil.which("pgbouncer", path=f"{os.environ['PATH']}{os.pathsep}/usr/sbin")
    if program is None:
        missing("pgbouncer is not installed")
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        with open(f"{folder}/pgbouncer.ini", "w", encoding="utf-8") as file:
            file.write(
                f"[databases]\n* = host=127.0.0.1 port={server.port} user=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\n"
                f"listen_port = {port}\nunix_socket_dir =\nauth_type = any\npool_mode = {mode}\n"
            )
        process = subprocess.Popen(
            [program, "-q", f"{folder}/pgbouncer.ini"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **as_server(),
        )
        try:
            address = f"postgresql://postgres@127.0.0.1:{port}/{url.rpartition('/')[2]}"
            wait_until(lambda: _listens(port))
            yield address
        finally:
            process.terminate()
            process.wait()


def _listens(port: int) -> bool:
    import socket

    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


async def test_two_daemons_share_a_database_behind_a_pooler_of_sessions(postgres: Server) -> None:
    from discreet.agents.stores.postgres.store import PostgresStore

    with pooled(postgres, "session", postgres.new_database()) as address:
        async with opened(PostgresStore(address)) as ours:
            async with opened(PostgresStore(address)) as theirs:
                await theirs.commit([change(a_task("t"), owner=theirs.owner_id)])
                with anyio.fail_after(DEADLINE_SECONDS):
                    assert (await ours.wait_for_changes(0.0)).may_concern("t")
                assert list(await ours.list_orphans()) == []
                for n in range(20):  # prepared statements too
                    assert await theirs.commit([change(a_task("t"), said(f"{n}"), expected=n + 1)]) == [None]
                await theirs.commit([change(a_task("t"), expected=21, owner=theirs.owner_id)])

            async def has_orphans() -> bool:
                return list(await ours.list_orphans()) == ["t"]

            await until(has_orphans)


async def test_a_pooler_of_transactions_is_refused_at_the_start(postgres: Server) -> None:
    from discreet.agents.stores.postgres.store import PostgresStore

    address = postgres.new_database()
    with (
        pooled(postgres, "transaction", address) as pooled_address,
        pytest.raises(StoreError, match="pool_mode = session"),
    ):
        await PostgresStore(pooled_address).open()
