"""What `stdio_bench.py` asks Linux: CPU clocks, memory, how busy everybody else is, and a time limit for what is measured."""

from __future__ import annotations

import contextlib
import os
import signal
import time

NS = time.perf_counter_ns
CHUNK = 65536


class BenchError(Exception):
    """A server died, hung, or answered wrongly."""


TICK = os.sysconf("SC_CLK_TCK")


def machine_busy() -> float:
    """CPU seconds spent by everything on the machine since boot (10 ms grain)."""
    with open("/proc/stat") as f:
        v = [int(x) for x in f.readline().split()[1:9]]
    return (v[0] + v[1] + v[2] + v[5] + v[6] + v[7]) / TICK


def wait_quiet(limit: float) -> float:
    """Wait until two 60 ms windows in a row are idle; return seconds waited."""
    t0 = time.monotonic()
    good = 0
    while good < 2 and time.monotonic() - t0 < limit:
        b = machine_busy()
        time.sleep(0.06)
        good = good + 1 if machine_busy() - b <= 0.011 else 0
    return time.monotonic() - t0


def family(pid: int) -> list[int]:
    """pid and its descendants (a wrapper script's child is the real server)."""
    out, todo = [], [pid]
    while todo:
        p = todo.pop()
        out.append(p)
        with contextlib.suppress(OSError):
            for task in os.listdir(f"/proc/{p}/task"):
                with contextlib.suppress(OSError), open(f"/proc/{p}/task/{task}/children") as f:
                    todo += [int(x) for x in f.read().split()]
    return out


def cpu_clock(pids: list[int]) -> float:
    """CPU seconds of the processes, all threads, nanosecond grain."""
    total = 0.0
    for p in pids:
        with contextlib.suppress(OSError):
            total += time.clock_gettime(((~p) << 3) | 2)
    return total


def run_delay(pids: list[int]) -> float:
    """Seconds the processes' threads were ready to run but had no CPU."""
    total = 0
    for p in pids:
        with contextlib.suppress(OSError):
            for task in os.listdir(f"/proc/{p}/task"):
                with contextlib.suppress(OSError), open(f"/proc/{p}/task/{task}/schedstat") as f:
                    total += int(f.read().split()[1])
    return total / 1e9


def status_kb(pids: list[int], key: str) -> int:
    total = 0
    for p in pids:
        with contextlib.suppress(OSError), open(f"/proc/{p}/status") as f:
            for line in f:
                if line.startswith(key + ":"):
                    total += int(line.split()[1])
    return total


def smaps_kb(pids: list[int]) -> dict[str, int]:
    out = {"rss": 0, "pss": 0, "private": 0}
    for p in pids:
        with contextlib.suppress(OSError), open(f"/proc/{p}/smaps_rollup") as f:
            for line in f:
                k, _, v = line.partition(":")
                if k == "Rss":
                    out["rss"] += int(v.split()[0])
                elif k == "Pss":
                    out["pss"] += int(v.split()[0])
                elif k in ("Private_Clean", "Private_Dirty"):
                    out["private"] += int(v.split()[0])
    return out


@contextlib.contextmanager
def deadline(seconds: float, what: str):
    def fire(*_):
        raise BenchError(f"{what}: no result within {seconds:.0f} s")

    old = signal.signal(signal.SIGALRM, fire)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
