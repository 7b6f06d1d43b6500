"""An HTTP server on loopback that gives one answer to every request, and keeps what arrived. Runs in a thread."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple


class Arrived(NamedTuple):
    method: str
    target: str
    headers: dict[str, str]
    body: bytes


class Stub:
    """`answer` is what the next requests get: status, media type, body."""

    def __init__(self) -> None:
        self.answer: tuple[int, str, bytes] = (200, "application/json", b"{}")
        self.arrived: list[Arrived] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def __enter__(self) -> Stub:
        return self

    def __exit__(self, *exc: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def _handler(stub: Stub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def handle_one_request(self) -> None:
            self.raw_requestline = self.rfile.readline(65537)
            if not self.raw_requestline or not self.parse_request():
                self.close_connection = True
                return
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            stub.arrived.append(Arrived(self.command, self.path, headers, body))
            status, media_type, text = stub.answer
            has_body = self.command != "HEAD" and status not in (204, 205, 304)
            self.send_response(status)
            if has_body and media_type:
                self.send_header("Content-Type", media_type)
            if status not in (204, 304):
                self.send_header("Content-Length", str(len(text)) if has_body else "0")
            self.end_headers()
            if has_body:
                self.wfile.write(text)
            self.wfile.flush()

        def log_message(self, *args: Any) -> None:
            pass

    return Handler
