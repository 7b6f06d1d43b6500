"""Proxies of the examples, run as processes on loopback."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .programs import environment
from .requirements import missing
from .waits import DEADLINE_SECONDS


@contextmanager
def program(command: list[str], folder: Path, **variables: str) -> Iterator[subprocess.Popen[bytes]]:
    """A program that writes to `folder/log`, until the block ends."""
    env = environment(**variables)
    with (
        (folder / "log").open("a") as log,
        subprocess.Popen(command, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log) as process,
    ):
        try:
            yield process
        finally:
            process.terminate()
            process.wait(DEADLINE_SECONDS)


def nginx_command(text: str, folder: Path) -> list[str]:
    """What runs nginx with this `http` part of its settings, and writes below `folder` only. Skips where there is none."""
    if not shutil.which("nginx"):
        missing("nginx is not installed")
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = "\n".join(f"{name}_temp_path {folder}/{name};" for name in kinds)
    whole = f"daemon off; pid {folder}/pid; events {{}}\nhttp {{ access_log off; {temporary}\n{text}}}\n"
    (folder / "nginx.conf").write_text(whole)
    return ["nginx", "-p", str(folder), "-e", "stderr", "-c", str(folder / "nginx.conf")]
