"""The Redis store with passwords, users of the server's access lists, and TLS."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from discreet.agents.stores.interface import CANCEL, OwnerRequest, TaskStore
from discreet.errors.redaction import scrub
from support.logged_events import logged_events
from support.places import store_at
from support.postgres import free_port
from support.redis import Server, running_server
from support.sqlite_files import opened, refusal
from support.task_changes import a_task, change, said

pytestmark = pytest.mark.anyio

PASSWORD = "Ope1n-Sesa2me"
COMMANDS = "+@all -@admin -@dangerous"
"""What a host leaves to its customers: neither CONFIG nor INFO."""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running_server() as server:
        client = server.client()
        for user, rights in (
            ("full", "+@all"),
            ("hosted", COMMANDS),
            ("documented", "+@read +@write +@connection +@scripting +cluster +time"),
            ("scriptless", f"{COMMANDS} -@scripting"),
            ("streamless", f"{COMMANDS} -@stream"),
            ("reader", "+@read +@connection +eval +evalsha"),
        ):
            client.execute_command("ACL", "SETUSER", user, "on", f">{PASSWORD}", "~{*", *rights.split())
        client.execute_command(
            "ACL", "SETUSER", "elsewhere", "on", f">{PASSWORD}", "~other:*", *COMMANDS.split(), "+info"
        )
        yield server


def new_store(server: Server, user: str = "", password: str = PASSWORD, url: str | None = None) -> Any:
    # Any: the module of the store may not be importable

    credentials = f"{user}:{password}@" if password else f"{user}@"
    return store_at((url or server.new_store()).replace("://", f"://{credentials}"))


async def works(store: TaskStore) -> None:
    assert await store.commit([change(a_task("t"), owner=store.owner_id)]) == [None]
    assert await store.send_owner_request(OwnerRequest("t", CANCEL))
    assert list(await store.take_owner_requests()) == [OwnerRequest("t", CANCEL)]
    assert await store.commit([change(a_task("t"), said("x"), expected=1, snapshot=True)]) == [None]


@pytest.mark.parametrize(("user", "loses"), [("full", "one second"), ("hosted", "unknown"), ("documented", "unknown")])
async def test_a_user_with_rights_can_use_it_and_what_can_not_be_known_is_said(
    server: Server, user: str, loses: str
) -> None:
    with logged_events("info") as logged:
        async with opened(new_store(server, user)) as store:
            assert PASSWORD not in scrub(f"it is {PASSWORD}")
            assert PASSWORD not in repr(store._address)
            await works(store)
        events = logged()
    assert [fields["loses"] for name, fields in events if name == "store.volatile"] == [loses]
    assert PASSWORD not in repr(events)


@pytest.mark.parametrize(("user", "password"), [("full", "wr0ng-one"), ("nobody", PASSWORD), ("", "wr0ng-one")])
async def test_a_wrong_user_or_password_is_refused_and_not_shown(server: Server, user: str, password: str) -> None:
    if not user:
        server.client().config_set("requirepass", PASSWORD)
    try:
        line = await refusal(new_store(server, user, password))
        assert "password is wrong" in line
        assert password not in line
    finally:
        if not user:
            _without_password(server)


def _without_password(server: Server) -> None:
    import redis

    redis.Redis(port=server.port, password=PASSWORD).config_set("requirepass", "")


async def test_a_password_may_be_in_the_environment_and_is_missed_where_it_is_nowhere(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.client().config_set("requirepass", PASSWORD)
    try:
        monkeypatch.delenv("REDISCLI_AUTH", raising=False)
        assert "needs a password" in await refusal(new_store(server, password=""))
        monkeypatch.setenv("REDISCLI_AUTH", PASSWORD)
        async with opened(new_store(server, password="")) as store:
            await works(store)
    finally:
        _without_password(server)


@pytest.mark.parametrize("user", ["scriptless", "streamless", "reader", "elsewhere"])
async def test_a_user_without_rights_is_refused(server: Server, user: str) -> None:
    assert "may not" in await refusal(new_store(server, user))


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The address of a server with TLS, without a database and parameters; and the folder of its files."""
    from support.certificates import Authority

    folder = tmp_path_factory.mktemp("certificates")
    right, wrong = Authority("right"), Authority("wrong")
    for name, content in zip(
        ("right.pem", "wrong.pem", "server.crt", "server.key"),
        (right.certificate, wrong.certificate, *right.for_localhost()),
        strict=True,
    ):
        (folder / name).write_bytes(content)
    port = str(free_port())
    with running_server(
        *("--tls-port", port, "--tls-cert-file", f"{folder}/server.crt", "--tls-key-file", f"{folder}/server.key"),
        *("--tls-ca-cert-file", f"{folder}/right.pem", "--tls-auth-clients", "optional"),
    ):
        yield f"rediss://localhost:{port}", folder


async def test_a_server_with_tls_is_used_where_its_certificate_is_right(secure: tuple[str, Path]) -> None:
    address, folder = secure
    files = f"ssl_certfile={folder}/server.crt&ssl_keyfile={folder}/server.key"
    for parameters in (
        f"ssl_ca_certs={folder}/right.pem",
        f"ssl_ca_certs={folder}/right.pem&{files}",
        "ssl_cert_reqs=none",
    ):
        async with opened(store_at(f"{address}/0?{parameters}")) as store:
            assert await store.probe() is None


@pytest.mark.parametrize(
    ("parameters", "why"),
    [
        ("ssl_ca_certs={folder}/wrong.pem", "certificate"),
        ("", "certificate"),
        ("ssl_ca_certs={folder}/nowhere.pem", "No such file"),
        ("ssl_ca_certs={folder}/right.pem&ssl_certfile={folder}/nowhere.crt", "No such file"),
    ],
)
async def test_a_server_with_tls_is_refused_where_its_certificate_is_wrong(
    secure: tuple[str, Path], parameters: str, why: str
) -> None:
    address, folder = secure
    assert why in await refusal(store_at(f"{address}/0?{parameters.format(folder=folder)}"))


async def test_tls_and_its_absence_do_not_go_together(
    secure: tuple[str, Path], server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("discreet.agents.stores.redis.session.ANSWER_SECONDS", 0.5)  # each waits for the other
    await refusal(store_at(secure[0].replace("rediss", "redis")))
    await refusal(store_at(server.url().replace("redis://", "rediss://")))
