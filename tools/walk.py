"""Prints which files one request passes through, in order, with the functions that are called in each.

    python -P tools/walk.py ./shop.py:shop shop/price '{"item": "lamp"}'

Starts the app's daemon twice, with four and with five requests, one after the other, and shows what the fifth one has added:
what is loaded or built with the first request is not in it. Needs discreet to be importable.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from typing import Any, Final

REQUESTS: Final = 4
SETTLE_SECONDS: Final = 0.5
"""How long what goes on behind the last answer may take."""

RECORDED: Final = """
import json, os, sys, threading
import discreet.__main__ as program
base = os.path.dirname(program.__file__)
roots = sorted({os.path.realpath(os.path.join(base, name)): name for name in ("", *os.listdir(base))}.items(), reverse=True)
calls = []
def note(frame, event, arg):
    if event == "call":
        path = os.path.realpath(frame.f_code.co_filename)
        for root, name in roots:
            if path.startswith(root + os.sep):
                calls.append((os.path.join(name, path[len(root) + 1:]), frame.f_code.co_qualname))
                break
leave = os._exit
def end(status):
    sys.setprofile(None)
    with open(os.environ["WALK_OUT"], "w") as file:
        json.dump(calls, file)
    leave(status)
os._exit = end
sys.argv = ["discreet", *sys.argv[1:]]
threading.setprofile(note)
sys.setprofile(note)
end(program.main() or 0)
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("app")
    parser.add_argument("method")
    parser.add_argument("params", nargs="?", default="{}", help="JSON; %%d stands for the number of the request")
    given = parser.parse_args()
    before = Counter(_calls(given.app, given.method, given.params, REQUESTS))
    after = _calls(given.app, given.method, given.params, REQUESTS + 1)
    counts = Counter(after)
    files: dict[str, list[str]] = {}
    for file, function in after:
        if counts[file, function] > before[file, function]:
            functions = files.setdefault(file, [])
            if function not in functions:
                functions.append(function)
    for file, functions in files.items():
        print(f"{file}: {', '.join(functions)}")
    print(f"{len(files)} files, {sum(map(len, files.values()))} functions")
    return 0


def _calls(app: str, method: str, params: str, count: int) -> list[tuple[str, str]]:
    with tempfile.NamedTemporaryFile() as out, tempfile.NamedTemporaryFile("w", suffix=".py") as script:
        script.write(RECORDED)
        script.flush()
        command = [sys.executable, "-P", script.name, "serve", app]
        environment = os.environ | {"WALK_OUT": out.name}
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
        ) as daemon:
            assert daemon.stdin is not None
            assert daemon.stdout is not None
            for number in range(count):
                told = json.loads(params.replace("%d", str(number)))
                body = json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": told}).encode()
                daemon.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
                daemon.stdin.flush()
                _read(daemon.stdout)
            time.sleep(SETTLE_SECONDS)
            daemon.stdin.close()
            daemon.wait()
        return [tuple(each) for each in json.load(out)]


def _read(stream: Any) -> bytes:
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += stream.read(1) or sys.exit("the daemon has closed its output")
    body: bytes = stream.read(int(head.split(b":")[1].split()[0]))
    return body


if __name__ == "__main__":
    sys.exit(main())
