"""The hot loops of `stdio_bench.py`: requests one at a time, many at once, and one large one. All is checked later."""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import threading
import time

from stdio_machine import CHUNK, NS, BenchError, cpu_clock
from stdio_server import Proc
from stdio_wire import FIRST_ID, Dialect, Framer, small_frames


def strict_count(d: Dialect, raw: bytes, frames_sent: list[bytes], first: int, n: int) -> int:
    """Parse everything again, frame by frame: each id once, a sample decoded."""
    bodies = Framer(d.framing).feed(raw)
    find = re.compile(rb'"id"\s*:\s*(\d+)').search
    seen = set()
    extra = 0
    step = max(1, n // 50)
    for body in bodies:
        m = find(body)
        rid = int(m.group(1)) if m else -1
        if not first <= rid < first + n:
            extra += 1
            continue
        if rid in seen:
            raise BenchError(f"id {rid} answered twice")
        seen.add(rid)
        if (rid - first) % step == 0:
            sent = json.loads(Framer(d.framing).feed(frames_sent[rid - first])[0])["params"]
            d.check(body, sent["arguments"] if d.dialect == "mcp" else sent)
    if len(seen) != n:
        raise BenchError(f"{len(seen)} of {n} ids answered")
    return extra


def pipelined(p: Proc, frames: list[bytes], window: int, cap: float) -> dict:
    """Send all frames, at most `window` unanswered (0: no limit); time the lot.

    One thread: non-blocking writes, and replies only counted, by their header
    (or newline).  Everything is kept, and checked strictly after the clock has
    stopped.  After `cap` seconds no further frames are sent.
    """
    n = len(frames)
    blob = memoryview(b"".join(frames))
    size = len(frames[0])
    assert len(blob) == size * n
    marker = b"\n" if p.framer.newline else p.framer.header
    keep = len(marker) - 1
    w, r = p.w, p.r
    read, write = os.read, os.write
    os.set_blocking(w, False)
    poller = select.poll()
    poller.register(r, select.POLLIN)
    poller.register(w, select.POLLOUT)
    chunks: list[bytes] = []
    tail = b""
    sent = 0  # bytes
    got = 0  # replies begun
    reads = 0
    top = len(blob)
    t_cap = NS() + int(cap * 1e9)
    cpu0, self0, t0 = cpu_clock(p.pids), time.process_time(), NS()
    while got < n:
        limit = top if not window else min(top, (got + window) * size)
        blocked = False
        if sent < limit:
            try:
                sent += write(w, blob[sent:limit])
            except BlockingIOError:
                pass
            blocked = sent < limit
        if blocked:
            # both directions may move; do not sleep in read() while we could write
            events = poller.poll()
            if not any(fd == r for fd, _ in events):
                continue
        chunk = read(r, CHUNK)
        if not chunk:
            raise BenchError("server closed its output\n" + p.stderr())
        reads += 1
        chunks.append(chunk)
        got += chunk.count(marker)
        if keep:
            if tail:
                got += (tail + chunk[:keep]).count(marker)
            tail = chunk[-keep:] if len(chunk) >= keep else (tail + chunk)[-keep:]
        if not reads & 63 and NS() > t_cap and top == len(blob):
            top = -(-sent // size) * size
            n = top // size
    if keep:  # the last reply has begun; see it to its end
        last = b"".join(chunks[-3:])
        at = last.rfind(marker)
        while True:
            end = last.find(b"\r\n\r\n", at)
            if end >= 0:
                stop = last.index(b"\r\n", at)
                if len(last) >= end + 4 + int(last[at + len(marker) : stop]):
                    break
            chunk = read(r, CHUNK)
            chunks.append(chunk)
            last += chunk
    t1 = NS()
    cpu1, self1 = cpu_clock(p.pids), time.process_time()
    os.set_blocking(w, True)
    wall = (t1 - t0) / 1e9
    raw = b"".join(chunks)
    first = int(re.search(rb'"id":(\d+)', frames[0]).group(1))
    extra = strict_count(p.d, raw, frames, first, n)
    return {
        "requests": n,
        "capped": n < len(frames),
        "wall_s": wall,
        "rps": n / wall,
        "server_cpu_s": cpu1 - cpu0,
        "server_cpu_s_per_1k": (cpu1 - cpu0) / n * 1000,
        "server_cores": (cpu1 - cpu0) / wall,
        "client_cpu_share": (self1 - self0) / wall,
        "reads": reads,
        "request_bytes": size,
        "reply_bytes": len(raw) / n,
        "unasked_messages": extra,
    }


def pingpong(p: Proc, frames: list[bytes]) -> list[int]:
    """One in flight; nanoseconds for each."""
    w, r = p.w, p.r
    read, write = os.read, os.write
    # learn the (constant) reply length from one extra round trip
    spare = small_frames(p.d, 1, 3_000_000)[0]
    p.write_all(spare)
    body = p.read_reply(3_000_000)
    probe = Framer(p.d.framing)
    out: list[int] = []
    replies: list[bytes] = []
    expect = 0
    for i, f in enumerate(frames):
        t = NS()
        write(w, f)
        data = read(r, CHUNK)
        if len(data) != expect:
            if not expect:
                while not probe.feed(data):
                    more = read(r, CHUNK)
                    data, probe = data + more, Framer(p.d.framing)
                expect = len(data)
            while len(data) < expect:
                more = read(r, CHUNK)
                if not more:
                    raise BenchError("server closed its output\n" + p.stderr())
                data += more
        out.append(NS() - t)
        replies.append(data)
    del body
    strict_count(p.d, b"".join(replies), frames, FIRST_ID, len(frames))
    return out[1:]


def exchange(p: Proc, frame: bytes) -> tuple[float, bytes, list[bytes]]:
    """One large request, a writer thread beside the reading thread; seconds."""
    view = memoryview(frame)

    def send():
        v = view
        with contextlib.suppress(OSError):
            while v:
                v = v[os.write(p.w, v) :]

    r, read = p.r, os.read
    thread = threading.Thread(target=send, daemon=True)
    chunks: list[bytes] = []
    have = 0
    total = None
    newline = p.framer.newline
    t0 = NS()
    thread.start()
    while True:
        chunk = read(r, CHUNK)
        if not chunk:
            raise BenchError("server closed its output\n" + p.stderr())
        chunks.append(chunk)
        have += len(chunk)
        if newline:
            if chunk.endswith(b"\n"):
                break
            continue
        if total is None:
            head = b"".join(chunks)
            end = head.find(b"\r\n\r\n")
            if end < 0:
                continue
            m = re.search(rb"(?i)content-length:\s*(\d+)", head[:end])
            total = end + 4 + int(m.group(1))
        if have >= total:
            break
    t1 = NS()
    thread.join()
    return (t1 - t0) / 1e9, b"".join(chunks), chunks
