"""The PostgreSQL store on servers as they are in production: with TLS, and with a standby that takes over."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from discreet.agents.stores.interface import StoreError
from support.postgres import PASSWORD, WITH_PASSWORD, Server, running_server
from support.sqlite_files import opened
from support.task_changes import a_task, change, said
from support.waits import DEADLINE_SECONDS

pytestmark = pytest.mark.anyio


def store_at(url: str) -> Any:  # Any: its module may not be importable
    from discreet.agents.stores.postgres.store import PostgresStore

    return PostgresStore(url)


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


# -- fail-over -------------------------------------------------------------------------------------------------


async def test_after_a_fail_over_everything_acknowledged_is_there_and_the_daemons_go_on() -> None:
    with running_server() as primary:
        name = primary.new_database().rpartition("/")[2]
        with running_server(primary) as standby:
            url = f"postgresql://postgres@127.0.0.1:{primary.port},127.0.0.1:{standby.port}/{name}"
            async with opened(store_at(url)) as ours, opened(store_at(url)) as theirs:
                await _fail_over(primary, standby, ours, theirs)


async def _fail_over(primary: Server, standby: Server, ours: Any, theirs: Any) -> None:  # Any: as above
    former = ours.owner_id
    assert await ours.commit([change(a_task("t"), owner=former)]) == [None]
    said_so_far: list[str] = []
    over = anyio.Event()

    async def say_more() -> None:
        number = len(said_so_far)
        made = await ours.commit([change(a_task("t"), said(f"{number}"), expected=number + 1, owner=former)])
        assert made == [None]
        said_so_far.append(f"{number}")

    async def fail_over() -> None:
        await anyio.to_thread.run_sync(primary.stop)
        await anyio.to_thread.run_sync(standby.promote)
        over.set()

    with anyio.fail_after(DEADLINE_SECONDS):
        async with anyio.create_task_group() as group:
            group.start_soon(fail_over)
            while not over.is_set():
                await say_more()
        await say_more()
        assert ours.owner_id != former
        read = await theirs.event_log.read("t", after=1, limit=len(said_so_far) + 1)
        assert [logged.event for logged in read] == [said(text) for text in said_so_far]
        while not (await ours.wait_for_changes(0.0)).may_concern("another"):  # it listens again
            pass
        assert await theirs.commit([change(a_task("u"))]) == [None]
        while not (await ours.wait_for_changes(0.0)).may_concern("u"):
            pass
