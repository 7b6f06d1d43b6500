"""Stands between an HTTP client and a server, and cuts one connection in the middle of a stream of events."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class CuttingProxy:
    """Leads from `port` to that of the server. The first connection whose answers have the marker is cut behind that event.

    `requests` are the request lines that came, `cuts` how often something was cut.
    """

    def __init__(self, server_port: int, marker: bytes) -> None:
        self.requests: list[str] = []
        self.cuts = 0
        self._server_port = server_port
        self._marker = marker
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._accepting.join()

    def _accept(self) -> None:
        with self._listener, suppress(OSError):  # it was shut down
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._server_port))
                threading.Thread(target=self._connect, args=(client, server), daemon=True).start()

    def _connect(self, client: socket.socket, server: socket.socket) -> None:
        asking = threading.Thread(target=self._ask, args=(client, server), daemon=True)
        asking.start()
        with client, server:
            self._answer(server, client)
            asking.join()

    def _ask(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(65536):
                self.requests += [line.decode() for line in data.split(b"\r\n") if line.endswith(b" HTTP/1.1")]
                server.sendall(data)
            server.shutdown(socket.SHUT_WR)

    def _answer(self, server: socket.socket, client: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(65536):
                at = data.find(self._marker) if not self.cuts else -1
                if at >= 0:
                    self.cuts += 1
                    client.sendall(data[: data.index(b"\n\n", at) + 2])
                    break
                client.sendall(data)
        for each in (client, server):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


@contextmanager
def cutting_proxy(server_port: int, marker: bytes) -> Iterator[CuttingProxy]:
    proxy = CuttingProxy(server_port, marker)
    try:
        yield proxy
    finally:
        proxy.close()
