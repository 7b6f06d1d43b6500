"""A server that takes forms, as the endpoints of an authorization server do, and answers them with JSON."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl

Form = dict[str, str]


class FormServer:
    """`answer` makes the answer to a form: JSON, or bytes as they are. `asked` has the forms, `authorizations` the headers. While
    `held` is cleared no answer is given.
    """

    def __init__(self, answer: Callable[[Form], Any]) -> None:
        self.answer = answer
        self.status = 200
        self.asked: list[Form] = []
        self.authorizations: list[str | None] = []
        self.held = threading.Event()
        self.held.set()
        self.url = ""


@contextmanager
def taking_forms(answer: Callable[[Form], Any]) -> Iterator[FormServer]:
    found = FormServer(answer)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            form = dict(
                parse_qsl(self.rfile.read(int(self.headers["content-length"])).decode(), keep_blank_values=True)
            )
            found.asked.append(form)
            found.authorizations.append(self.headers["authorization"])
            found.held.wait(30)
            answer = found.answer(form)
            text = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            with suppress(OSError):  # who asked may have gone
                self.send_response(found.status)
                self.send_header("content-length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

        def log_message(self, format: str, *args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    found.url = f"http://127.0.0.1:{server.server_address[1]}/token"
    try:
        yield found
    finally:
        found.held.set()
        server.shutdown()
        thread.join()
        server.server_close()
