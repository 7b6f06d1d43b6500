"""A daemon that hosts an import, driven over its pipes; and calls of imported operations whose answers fit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from samples import sample

ECHO = Path(__file__).resolve().parents[1] / "echo.py"


class Call(NamedTuple):
    """A call of an operation, and the response that it needs."""

    name: str
    params: Any
    answer: tuple[int, str, bytes]


def flags(folder: Path, document: Path | None, url: str) -> list[str]:
    """The flags that host a document, with files that they name in a folder."""
    (folder / "token").write_text("user:token-of-the-benchmark")
    lines = ["drain-timeout = 1"]
    if document is not None:
        table = {"openapi": str(document), "base-url": url, "credential": "token"}
        lines += ["[import.x]", "expose = true", "allow-private = true"]
        lines += [f"{name} = {json.dumps(value)}" for name, value in table.items()]
    (folder / "discreet.toml").write_text("\n".join(lines))
    return [f"--credential=token={folder / 'token'}", f"--config={folder / 'discreet.toml'}"]


class Daemon:
    """`discreet serve` of `echo`, and of a document as the import `x`, with a server of its own. `cache` is a folder. `lines`:
    each message is a line, as in MCP. Without a document there are a credential and a settings file all the same.
    """

    def __init__(
        self, folder: Path, cache: Path, document: Path | None = None, url: str = "", *more: str, lines: bool = False
    ) -> None:
        command = [sys.executable, "-P", "-m", "discreet", "serve", "--log-file", str(folder / "log"), *more]
        self._lines = lines
        if "--dialect" not in more:
            command.insert(5, f"{ECHO}:inline")
        command += flags(folder, document, url)
        self.received = 0
        self.began = time.perf_counter()
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "XDG_CACHE_HOME": str(cache)},
        )
        self._number = 0

    def call(self, method: str, params: Any) -> dict[str, Any]:
        """The answer. Raises `RuntimeError` with what the daemon said last, if it has ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._number += 1
        body = json.dumps({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}).encode()
        try:
            self._process.stdin.write(
                body + b"\n" if self._lines else b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
            )
            self._process.stdin.flush()
        except BrokenPipeError:
            pass
        while True:
            text = self._process.stdout.readline() if self._lines else self._framed()
            self.received = len(text)
            if not text:
                assert self._process.stderr is not None
                raise RuntimeError(self._process.stderr.read().decode(errors="replace").strip()[-400:])
            message = json.loads(text)
            if message.get("id") == self._number:
                return message

    def _framed(self) -> bytes:
        assert self._process.stdout is not None
        length = 0
        while line := self._process.stdout.readline().strip():
            if line.lower().startswith(b"content-length:"):
                length = int(line.partition(b":")[2])
        return self._process.stdout.read(length)

    def started(self) -> tuple[float, float]:
        """Seconds from the start to the answer of `echo`, and those of the CPU."""
        self.call("echo", {"seq": 1})
        return time.perf_counter() - self.began, self.cpu()

    def cpu(self) -> float:
        """Seconds that its threads have run."""
        tasks = Path(f"/proc/{self._process.pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9

    def rss(self) -> int:
        lines = Path(f"/proc/{self._process.pid}/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) * 1024

    def __enter__(self) -> Daemon:
        return self

    def __exit__(self, *exc: object) -> None:
        self._process.kill()
        self._process.communicate()


def calls_of(path: Path, most: int) -> Iterator[Call]:
    """Calls of operations that lie far apart in a document, each with an answer that fits its schema."""
    import jsonschema_rs

    from discreet.imports.archive import ImportArchive, pack
    from discreet.imports.from_openapi import HttpImport, HttpOperation
    from discreet.imports.openapi.reader import read_openapi

    imported = read_openapi(path.read_bytes(), origin=path.as_uri())
    packed = ImportArchive(pack(imported), HttpImport, HttpOperation)
    found = 0
    count = len(imported.operations)
    for turn in range(count):
        operation = imported.operations[(turn * (count // most or 1) + turn // most) % count]
        success = next((reply for reply in operation.replies if not reply.code), None)
        if operation.kind == "subscription" or success is None or found == most:
            continue
        forms = [(media, form) for media, form in success.forms.items() if form == "json" and "*" not in media]
        status = int(success.status) if success.status.isdigit() else 200
        if success.forms and not forms:
            continue
        values = []
        for schema in (operation.input, operation.output):
            document = packed.document(schema)
            value = sample(document)
            if not jsonschema_rs.Draft202012Validator(document, validate_formats=False).is_valid(value):
                break
            values.append(value)
        else:
            found += 1
            answer = (status, forms[0][0], json.dumps(values[1]).encode()) if forms else (status, "", b"")
            yield Call(f"x/{operation.name}", values[0], answer)
