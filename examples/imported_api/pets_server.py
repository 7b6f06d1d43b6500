"""A small HTTP server with an OpenAPI document, as somebody else might run it: python pets_server.py PORT."""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

PETS: dict[str, dict[str, Any]] = {"tom": {"name": "tom", "kind": "cat"}, "rex": {"name": "rex", "kind": "dog"}}
DOCUMENT = Path(__file__).with_name("pets.json").read_bytes()


class Pets(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        name = path.removeprefix("/pets/")
        if path == "/openapi.json":
            self.answer(200, DOCUMENT)
        elif path == "/pets":
            kind = query.removeprefix("kind=")
            self.answer(200, json.dumps([pet for pet in PETS.values() if kind in ("", pet["kind"])]).encode())
        elif name in PETS:
            self.answer(200, json.dumps(PETS[name]).encode())
        else:
            self.answer(404, json.dumps({"unknown": name}).encode())

    def do_POST(self) -> None:
        pet = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.headers["authorization"] != "Bearer secret":
            self.answer(401, b"")
        elif pet["name"] in PETS:
            self.answer(429, json.dumps({"unknown": pet["name"]}).encode(), ("retry-after", "2"))
        else:
            PETS[pet["name"]] = pet
            self.answer(201, json.dumps(pet).encode())

    def answer(self, status: int, body: bytes, *headers: tuple[str, str]) -> None:
        self.send_response(status)
        for name, value in (*headers, ("content-type", "application/json"), ("content-length", str(len(body)))):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Pets).serve_forever()
