"""The credentials that services declare for their own work."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from discreet import Context, Service
from discreet.daemon.apps import AppError
from discreet.daemon.hosting import credentials_of
from discreet.daemon.settings import Settings
from discreet.errors.redaction import scrub
from support.vault import SECRET

pytestmark = pytest.mark.anyio

Serving = Callable[..., AbstractAsyncContextManager[Any]]


async def test_a_service_finds_the_credentials_that_it_declares_and_no_others(serving: Serving, tmp_path: Any) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_text(f"  {SECRET}-{name}\n")
    services = []
    for name in ("one", "two"):
        service = Service(name, credentials=[name])

        @service.query(inline=True)
        def lengths(ctx: Context) -> dict[str, int]:
            return {key: len(value) for key, value in ctx.credentials.items()}

        services.append(service)
    settings = Settings(credentials=tuple(f"{name}={tmp_path / name}" for name in ("one", "two")))
    credentials = credentials_of(settings, services)
    async with serving(*services, credentials=credentials) as wire:
        for name in ("one", "two"):
            assert (await wire.call(f"{name}/lengths"))["result"] == {name: len(SECRET) + 4}


@pytest.mark.parametrize("given", [(), ("other=x",), ("one",), ("=x",), ("one=",), ("one=/no/such/file-of-mine",)])
def test_a_missing_credential_is_told_at_the_start_without_its_path(given: tuple[str, ...]) -> None:
    with pytest.raises(AppError) as caught:
        credentials_of(Settings(credentials=given), [Service("one", credentials=["one"])])
    assert "file-of-mine" not in str(caught.value)


def test_a_credential_is_read_again_when_its_file_changes_and_kept_when_that_goes(tmp_path: Any) -> None:
    file = tmp_path / "one"
    file.write_text("first-secret")
    credentials = credentials_of(Settings(credentials=(f"one={file}",)), [Service("one", credentials=["one"])])
    assert dict(credentials) == {"one": "first-secret"}
    (tmp_path / "new").write_text("second-secret\n")
    (tmp_path / "new").replace(file)  # as those who rotate secrets do
    assert credentials["one"] == "second-secret"
    assert "second-secret" not in scrub("the value is second-secret")
    for content in (b"", b"\xff\xfe\xfd"):
        file.write_bytes(content)
        assert credentials["one"] == "second-secret"
    file.unlink()
    assert credentials["one"] == "second-secret"
    file.write_text("third")
    assert credentials["one"] == "third"
