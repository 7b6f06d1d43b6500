"""Stands between daemons and a PostgreSQL server: holds up or swallows a COMMIT or its answer, or stands still as a network does
behind which a machine has died."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from .waits import DEADLINE_SECONDS

_ASKED: Final = b"\0COMMIT\0"
"""In the message of a client that has the server parse this statement, after an empty name. That with which psycopg ends its own
blocks begins otherwise."""

_ANSWERED: Final = b"COMMIT\0"
"""The end of the message that a COMMIT is complete."""


class Fault:
    """Meets one COMMIT: swallows its answer with `lose_answer`, else the COMMIT itself. Then it cuts the connection.

    `met` is set when that COMMIT has come; what it does then waits for `go_on`.
    """

    def __init__(self, *, lose_answer: bool) -> None:
        self.lose_answer = lose_answer
        self.met = threading.Event()
        self.go_on = threading.Event()
        self.done = threading.Event()


class PostgresProxy:
    """Leads from `port` to that of the server. A `fault` happens to the next connection that it fits."""

    def __init__(self, server_port: int) -> None:
        self.fault: Fault | None = None
        self.refuses = False
        self.frozen = False
        self._server_port = server_port
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._accepting.join()
        self.cut()

    def cut(self) -> None:
        """Every connection."""
        for pair in self._pairs:
            _cut(*pair)

    def _accept(self) -> None:
        with self._listener, suppress(OSError):  # it was shut down
            while True:
                client, _ = self._listener.accept()
                if self.refuses:
                    client.close()
                    continue
                try:
                    server = socket.create_connection(("127.0.0.1", self._server_port))
                except OSError:
                    client.close()
                    continue
                self._pairs.append((client, server))
                threading.Thread(target=self._connect, args=(client, server), daemon=True).start()

    def _connect(self, client: socket.socket, server: socket.socket) -> None:
        asked: list[Fault] = []
        asking = threading.Thread(target=self._ask, args=(client, server, asked), daemon=True)
        asking.start()
        with client, server:
            self._answer(server, client, asked)
            asking.join()

    def _ask(self, client: socket.socket, server: socket.socket, asked: list[Fault]) -> None:
        seen = b""
        with suppress(OSError):
            while data := client.recv(65536):
                seen = (seen + data)[-len(data) - len(_ASKED) :]
                fault = self.fault
                if fault is not None and _ASKED in seen:
                    self.fault = None
                    asked.append(fault)
                    if not fault.lose_answer:
                        _happen(fault)
                        break
                if not self.frozen:
                    server.sendall(data)
        _cut(client, server)

    def _answer(self, server: socket.socket, client: socket.socket, asked: list[Fault]) -> None:
        seen = b""
        with suppress(OSError):
            while data := server.recv(65536):
                seen = (seen + data)[-len(data) - len(_ANSWERED) :]
                if asked and asked[0].lose_answer and _ANSWERED in seen:
                    _happen(asked[0])
                    break
                if not self.frozen:
                    client.sendall(data)
        if not self.frozen:
            _cut(client, server)


def _happen(fault: Fault) -> None:
    fault.met.set()
    fault.go_on.wait(DEADLINE_SECONDS)
    fault.done.set()


def _cut(*sockets: socket.socket) -> None:
    for each in sockets:
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)


@contextmanager
def postgres_proxy(server_port: int) -> Iterator[PostgresProxy]:
    proxy = PostgresProxy(server_port)
    try:
        yield proxy
    finally:
        proxy.close()
