"""`--tcp`: one client of the network takes the place of stdin and stdout."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.frames import f
from support.programs import DISCREET, environment, finished
from support.waits import DEADLINE_SECONDS

SERVER = """
from discreet import Service

words = Service("words", dialect="lsp", version="1")
"""

HELLO = f(b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"processId":null,"capabilities":{}}}')
END = f(b'{"jsonrpc":"2.0","id":2,"method":"shutdown"}') + f(b'{"jsonrpc":"2.0","method":"exit"}')


@contextmanager
def listening(folder: Path, *flags: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The daemon, and where it says that it listens. Its stdin is at its end from the beginning."""
    (folder / "words.py").write_text(SERVER)
    command = [*DISCREET, "serve", "./words.py:words", *flags]
    with subprocess.Popen(
        command,
        cwd=folder,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stderr is not None
            said = process.stderr.readline()
            where = re.search(r"event=tcp\.listening address=(\S+)", said)
            assert where is not None, said
            yield process, where[1]
        finally:
            process.kill()


def read_all(client: socket.socket) -> bytes:
    return b"".join(iter(lambda: client.recv(65536), b""))


def test_a_client_is_served_at_a_port_of_this_machine_until_it_leaves(tmp_path: Path) -> None:
    with listening(tmp_path, "--tcp", ":0") as (process, where):
        host, _, port = where.rpartition(":")
        assert host == "127.0.0.1"
        with socket.create_connection((host, int(port)), timeout=DEADLINE_SECONDS) as client:
            client.sendall(HELLO + END)
            answered = read_all(client)
        assert process.wait(DEADLINE_SECONDS) == 0
        assert process.stdout is not None
        assert process.stdout.read() == ""
    assert b'"serverInfo":{"name":"words","version":"1"}' in answered
    assert b'"id":2,"result":null' in answered


def test_a_client_is_served_at_a_socket_of_its_user_alone(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with listening(tmp_path, "--tcp", "unix:s") as (process, _):
        assert path.stat().st_mode & 0o777 == 0o600
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(DEADLINE_SECONDS)
            client.connect(str(path))
            client.sendall(HELLO)
            client.shutdown(socket.SHUT_WR)
            assert b'"serverInfo"' in read_all(client)
        process.wait(DEADLINE_SECONDS)
    assert not path.exists()


def test_a_signal_ends_the_wait_for_a_client(tmp_path: Path) -> None:
    with listening(tmp_path, "--tcp", "127.0.0.1:0") as (process, _):
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE_SECONDS) == 0


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        ("--tcp TAKEN", "--tcp: Address already in use"),
        ("--tcp 127.0.0.1", "--tcp: expected HOST:PORT or unix:PATH; the port is missing, such as 127.0.0.1:8000"),
        ("--tcp :0 --reload", "--tcp stands in the place of stdin and stdout, and --reload is about these"),
        ("--tcp :0 --no-stdio --http :0", "--tcp stands in the place of stdin and stdout, and --no-stdio is about these"),
    ],
)  # fmt: skip
def test_what_can_not_be_is_one_line(tmp_path: Path, flags: str, line: str) -> None:
    (tmp_path / "words.py").write_text(SERVER)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        words = flags.replace("TAKEN", f"127.0.0.1:{taken.getsockname()[1]}").split()
        done = finished([*DISCREET, "serve", "./words.py:words", *words], tmp_path)
    assert done.stderr.startswith(f"discreet: {line}")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
