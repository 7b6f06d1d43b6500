"""Which addresses of stores are taken as they are, and which are refused before anything is opened."""

from __future__ import annotations

import os

import pytest

from discreet.daemon.settings import UsageError
from support.command_lines import load_settings

HERE = os.getcwd()


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://one:5432,two/tasks?target_session_attrs=read-write",
        "postgres:///tasks",
        "redis://one:6379/0",
        "rediss://one",
        "unix:///run/redis.sock",
    ],
)
def test_the_address_of_a_server_is_taken_as_it_is(address: str) -> None:
    assert load_settings(["--store", address], {}, HERE).store == address
    assert load_settings([], {"DISCREET_STORE": address}, HERE).store == address


@pytest.mark.parametrize(
    "address", ["postgresql://known, two/tasks", " redis://known", "mysql://known/tasks", "redis:known", "sqlite:"]
)
def test_another_address_is_refused_and_not_repeated(address: str) -> None:
    with pytest.raises(UsageError, match="expected memory") as refused:
        load_settings(["--store", address], {}, HERE)
    assert "known" not in str(refused.value)
