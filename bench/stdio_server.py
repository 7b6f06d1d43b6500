"""One server process of `stdio_bench.py`: how it is started, spoken to, and ended."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import socket
import tempfile
import time

from stdio_machine import CHUNK, NS, BenchError, family, run_delay
from stdio_wire import FIRST_ID, Dialect, Framer, small_params


class Spec:
    def __init__(self, name: str, command: str, dialect: Dialect) -> None:
        self.name, self.command, self.dialect = name, command, dialect
        self.argv = shlex.split(os.path.expandvars(command))


class Proc:
    """A spawned server: raw descriptors, no buffering, no event loop."""

    delay = 0.0  # summed over all servers so far, see run_delay()

    def __init__(self, spec: Spec, opts, placement: str | None = None) -> None:
        self.spec, self.d = spec, spec.dialect
        self.cpus = opts.cpus
        self.err = tempfile.TemporaryFile()
        env = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
        env.update(kv.split("=", 1) for kv in opts.env)
        if opts.stdio == "socketpair":  # what node's child_process gives its children
            child_in, self.w = (s.detach() for s in socket.socketpair())
            self.r, child_out = (s.detach() for s in socket.socketpair())
        else:
            child_in, self.w = os.pipe()
            self.r, child_out = os.pipe()
        actions = [
            (os.POSIX_SPAWN_DUP2, child_in, 0),
            (os.POSIX_SPAWN_DUP2, child_out, 1),
            (os.POSIX_SPAWN_DUP2, self.err.fileno(), 2),
        ]
        placement = placement or opts.pin
        if placement != "none":  # the child inherits this
            os.sched_setaffinity(0, set(self.cpus[1:] if placement == "split" else self.cpus[-1:]) or set(self.cpus))
        self.t0 = NS()
        self.pid = os.posix_spawnp(spec.argv[0], spec.argv, env, file_actions=actions)
        os.close(child_in)
        os.close(child_out)
        if placement == "split":
            os.sched_setaffinity(0, {self.cpus[0]})
        self.framer = Framer(self.d.framing)
        self.pids = [self.pid]
        self.closed = False
        self.exit_ms = None
        self.exit_note = None

    # -- plain, careful I/O --------------------------------------------------

    def write_all(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self.w, view) :]

    def read_reply(self, rid: int) -> bytes:
        """The reply to rid; notifications and other requests are skipped."""
        while True:
            data = os.read(self.r, CHUNK)
            if not data:
                raise BenchError("server closed its output\n" + self.stderr())
            for body in self.framer.feed(data):
                if re.search(rb'"id"\s*:\s*%d\b' % rid, body):
                    return body

    def handshake(self) -> None:
        if self.d.dialect == "mcp":
            info = {"name": "stdio-bench", "version": "1"}
            params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info}
            self.write_all(self.d.message(id=1, method="initialize", params=params))
            self.read_reply(1)
            self.write_all(self.d.message(method="notifications/initialized"))

    def echo_once(self, rid: int) -> bytes:
        params = small_params(rid)
        self.write_all(self.d.request(rid, "echo", params))
        body = self.read_reply(rid)
        self.d.check(body, params)
        return body

    def ready(self) -> None:
        """Handshake, and one checked echo."""
        self.handshake()
        self.echo_once(FIRST_ID - 1)
        self.pids = family(self.pid)

    def stderr(self) -> str:
        self.err.seek(0)
        return self.err.read()[-1500:].decode("utf-8", "replace")

    def close(self) -> None:
        """End of input; the server should leave by itself, else it is killed."""
        if self.closed:
            return
        self.closed = True
        Proc.delay += run_delay(self.pids)
        t = NS()
        os.close(self.w)
        code = None
        while (NS() - t) / 1e9 < 3:
            pid, code, _ = os.wait4(self.pid, os.WNOHANG)
            if pid:
                break
            time.sleep(0.001)
        else:
            for p in reversed(self.pids):
                with contextlib.suppress(OSError):
                    os.kill(p, signal.SIGKILL)
            os.wait4(self.pid, 0)
            self.exit_note = "killed after 3 s"
        if self.exit_note is None:
            self.exit_ms = (NS() - t) / 1e6
            self.exit_note = f"status {os.waitstatus_to_exitcode(code)}"
        os.close(self.r)
        self.err.close()
        os.sched_setaffinity(0, set(self.cpus))
