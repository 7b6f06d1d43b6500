"""What importing the client costs, and what it must never load."""

from __future__ import annotations

import subprocess
import sys

import discreet
import discreet.client
from support.programs import environment

HEAVY = ("asyncio", "trio", "structlog", "logging", "ssl", "socket", "tempfile", "random")


def loaded_by(statement: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-P", "-c", f"{statement}\nimport sys\nprint(*sys.modules)"],
        check=True,
        capture_output=True,
        text=True,
        env=environment(),
    )
    return set(done.stdout.split())


def test_the_client_loads_no_daemon_and_nothing_heavy() -> None:
    without, loaded = loaded_by("pass"), loaded_by("import discreet.client")
    new = loaded - without
    assert "discreet.client.peer" in new
    assert not {name for name in new if name.startswith("discreet.daemon")}
    assert not new & set(HEAVY)


def test_the_blocking_client_loads_no_daemon_and_the_async_one_not_the_blocking_one() -> None:
    assert not {name for name in loaded_by("import discreet.client.blocking") if name.startswith("discreet.daemon")}
    assert "discreet.client.blocking" not in loaded_by("import discreet.client")


def test_every_exported_name_exists() -> None:
    assert all(hasattr(discreet.client, name) for name in discreet.client.__all__)
