"""The PostgreSQL store on servers as they are in production: with TLS, and behind PgBouncer."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest

from discreet.agents.stores.interface import StoreError
from support.places import store_at
from support.postgres import PASSWORD, WITH_PASSWORD, Server, as_server, free_port, running_server
from support.requirements import missing
from support.sqlite_files import opened
from support.task_changes import a_task, change, said
from support.waits import DEADLINE_SECONDS, until, wait_until

pytestmark = pytest.mark.anyio


# -- TLS -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def authorities(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The files of two authorities, the right one of which has signed the server's certificate."""
    pytest.importorskip("cryptography")
    from support.certificates import Authority

    folder = tmp_path_factory.mktemp("authorities")
    right, wrong = Authority("right"), Authority("wrong")
    for name, authority in (("right", right), ("wrong", wrong)):
        (folder / f"{name}.pem").write_bytes(authority.certificate)
    certificate, key = right.for_localhost()
    (folder / "server.crt").write_bytes(certificate)
    (folder / "server.key").write_bytes(key)
    return {path.name: path for path in folder.iterdir()}


@pytest.fixture(scope="module")
def tls_server(authorities: dict[str, Path]) -> Iterator[Server]:
    with running_server() as server:
        server.use_certificate(authorities["server.crt"].read_bytes(), authorities["server.key"].read_bytes())
        yield server


def address(server: Server, url: str, host: str, ca: Path) -> str:
    name = url.rpartition("/")[2]
    user = f"{WITH_PASSWORD}:{PASSWORD}"
    return f"postgresql://{user}@{host}:{server.port}/{name}?sslmode=verify-full&sslrootcert={ca}"


async def test_a_server_is_verified_by_the_authority_that_the_address_names(
    tls_server: Server, authorities: dict[str, Path]
) -> None:
    url = tls_server.new_database()
    async with opened(store_at(address(tls_server, url, "localhost", authorities["right.pem"]))) as store:
        assert await store.commit([change(a_task("t"))]) == [None]
        uses = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
        assert await store._write(lambda batch: batch.connection.execute(uses).fetchone()) == (True,)
        assert await store._read(lambda connection: connection.execute(uses).fetchone()) == (True,)


@pytest.mark.parametrize(("host", "ca"), [("localhost", "wrong.pem"), ("127.0.0.1", "right.pem")])
async def test_a_server_that_can_not_be_verified_is_refused_in_one_line(
    tls_server: Server, authorities: dict[str, Path], host: str, ca: str
) -> None:
    store = store_at(address(tls_server, tls_server.new_database(), host, authorities[ca]))
    with pytest.raises(StoreError) as error:
        await store.open()
    (line,) = str(error.value).splitlines()
    assert "certificate" in line and PASSWORD not in line and WITH_PASSWORD not in line


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
    with pooled(postgres, "session", postgres.new_database()) as address:
        async with opened(store_at(address)) as ours:
            async with opened(store_at(address)) as theirs:
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
    address = postgres.new_database()
    with (
        pooled(postgres, "transaction", address) as pooled_address,
        pytest.raises(StoreError, match="pool_mode = session"),
    ):
        await store_at(pooled_address).open()
