"""The scenarios of `stdio_bench.py`: each takes a server and the options, and returns one sample."""

from __future__ import annotations

import contextlib
import os
import statistics
import threading
import time

from stdio_loops import exchange, pingpong, pipelined, strict_count
from stdio_machine import CHUNK, NS, BenchError, cpu_clock, family, smaps_kb, status_kb
from stdio_server import Proc, Spec
from stdio_wire import FIRST_ID, Framer, big_params, small_frames, small_params


@contextlib.contextmanager
def running(spec: Spec, opts, warmup: int | None = None, ready: bool = True, placement: str | None = None):
    p = Proc(spec, opts, placement)
    try:
        if ready:
            p.ready()
            if n := opts.warmup if warmup is None else warmup:
                pipelined(p, small_frames(p.d, n, 2_000_000), 64, 60)
        yield p
    except (BrokenPipeError, ConnectionError) as e:
        raise BenchError(f"{e}\n{p.stderr()}") from e
    finally:
        p.close()


def run_cold(spec, opts):
    with running(spec, opts, ready=False) as p:
        frame = p.d.request(FIRST_ID, "echo", small_params(FIRST_ID))
        p.handshake()
        p.write_all(frame)
        body = p.read_reply(FIRST_ID)
        t1 = NS()
        p.pids = family(p.pid)
        cpu = cpu_clock(p.pids)
        peak = status_kb(p.pids, "VmHWM")
        p.d.check(body, small_params(FIRST_ID))
        sample = {"ms": (t1 - p.t0) / 1e6, "cpu_ms": cpu * 1e3, "peak_rss_mb": peak / 1024}
    sample["exit_ms"] = p.exit_ms if p.exit_ms is not None else 3000.0
    sample["exit_note"] = p.exit_note
    return sample


def run_latency(spec, opts, placement=None):
    with running(spec, opts, placement=placement) as p:
        frames = small_frames(p.d, opts.pings + 1)
        cpu0 = cpu_clock(p.pids)
        lat = sorted(pingpong(p, frames))
        cpu1 = cpu_clock(p.pids)
    n = len(lat)
    return {
        "p50_us": lat[n // 2] / 1e3,
        "p90_us": lat[int(n * 0.90)] / 1e3,
        "p99_us": lat[int(n * 0.99)] / 1e3,
        "max_us": lat[-1] / 1e3,
        "server_cpu_us": (cpu1 - cpu0) / (n + 2) * 1e6,
        "request_bytes": len(frames[0]),
    }


def run_throughput(spec, opts, n=None, window=256):
    with running(spec, opts) as p:
        sample = pipelined(p, small_frames(p.d, n or opts.requests), window, opts.cap)
        sample["peak_rss_mb"] = status_kb(p.pids, "VmHWM") / 1024
    return sample


PAYLOADS: dict = {}


def run_big(spec, opts, kind="str", mb=1):
    if (kind, mb) not in PAYLOADS:
        PAYLOADS[kind, mb] = big_params(kind, mb * 1_000_000)
    params = PAYLOADS[kind, mb]
    with running(spec, opts, warmup=0) as p:
        frame = p.d.request(FIRST_ID, "echo", params)
        times = []
        cpu0 = 0.0
        for i in range(opts.big_reps + 1):
            seconds, raw, _ = exchange(p, frame)
            if i == 0:
                bodies = Framer(p.d.framing).feed(raw)
                if len(bodies) != 1:
                    raise BenchError(f"{len(bodies)} frames for one request")
                p.d.check(bodies[0], params)
                cpu0 = cpu_clock(p.pids)
            else:
                times.append(seconds)
        cpu1 = cpu_clock(p.pids)
        peak = status_kb(p.pids, "VmHWM") / 1024
    mid = statistics.median(times)
    return {
        "ms": mid * 1e3,
        "mb_s": (len(frame) + len(raw)) / 1e6 / mid,
        "server_cpu_ms": (cpu1 - cpu0) / len(times) * 1e3,
        "peak_rss_mb": peak,
        "request_mb": len(frame) / 1e6,
        "reply_mb": len(raw) / 1e6,
    }


def run_idle(spec, opts):
    with running(spec, opts, warmup=0) as p:
        time.sleep(1.0)
        m = smaps_kb(p.pids)
        cpu0 = cpu_clock(p.pids)
        time.sleep(1.0)
        cpu1 = cpu_clock(p.pids)
        return {
            "rss_mb": m["rss"] / 1024,
            "pss_mb": m["pss"] / 1024,
            "private_mb": m["private"] / 1024,
            "threads": status_kb(p.pids, "Threads"),
            "idle_cpu_ms_per_s": (cpu1 - cpu0) * 1e3,
        }


def run_burst(spec, opts, pad=0):
    """Everything is sent at once; nothing is read for `--stall` seconds."""
    with running(spec, opts, warmup=0) as p:
        frames = small_frames(p.d, opts.burst, pad=pad)
        size = len(frames[0])
        blob = memoryview(b"".join(frames))
        before = smaps_kb(p.pids)["rss"]
        done = [0]

        def send():
            v = blob
            with contextlib.suppress(OSError):
                while v:
                    k = os.write(p.w, v[:CHUNK])
                    done[0] += k
                    v = v[k:]

        thread = threading.Thread(target=send, daemon=True)
        t0 = NS()
        thread.start()
        time.sleep(opts.stall)
        accepted = done[0]
        stalled_peak = status_kb(p.pids, "VmHWM")
        t1 = NS()
        framer, got, chunks = Framer(p.d.framing), 0, []
        while got < opts.burst:
            data = os.read(p.r, CHUNK)
            if not data:
                raise BenchError("server closed its output\n" + p.stderr())
            chunks.append(data)
            got += len(framer.feed(data))
        t2 = NS()
        thread.join()
        peak = status_kb(p.pids, "VmHWM")
        time.sleep(0.5)
        after = smaps_kb(p.pids)["rss"]
        strict_count(p.d, b"".join(chunks), frames, FIRST_ID, opts.burst)
    return {
        "rss_before_mb": before / 1024,
        "accepted_in_stall": accepted / size,
        "peak_in_stall_mb": stalled_peak / 1024,
        "peak_mb": peak / 1024,
        "growth_mb": (peak - before) / 1024,
        "rss_after_mb": after / 1024,
        "drain_ms": (t2 - t1) / 1e6,
        "burst_mb": len(blob) / 1e6,
        "total_ms": (t2 - t0) / 1e6,
    }


def run_long(spec, opts):
    """Very many requests in one process, in quarters: does a request cost the same at the end, and what stays in memory?"""
    quarter = opts.long // 4
    sample = {}
    with running(spec, opts) as p:
        sample["rss_0_mb"] = smaps_kb(p.pids)["rss"] / 1024
        for part in range(1, 5):
            frames = small_frames(p.d, quarter, FIRST_ID + part * quarter)
            rate = pipelined(p, frames, 256, opts.timeout)
            sample[f"cpu_us_{part}"] = rate["server_cpu_s"] / quarter * 1e6
            sample[f"wall_s_{part}"] = rate["wall_s"]
            sample[f"rss_{part}_mb"] = smaps_kb(p.pids)["rss"] / 1024
            del frames
    return sample


def run_sleepers(spec, opts):
    """Echo, one at a time, before and while many other requests sleep."""
    with running(spec, opts) as p:
        frames = small_frames(p.d, opts.pings + 1)
        sample = {}
        for key in ("alone", "beside"):
            cpu0 = cpu_clock(p.pids)
            lat = sorted(pingpong(p, frames))
            sample[f"{key}_cpu_us"] = (cpu_clock(p.pids) - cpu0) / len(frames) * 1e6
            sample[f"{key}_p50_us"] = lat[len(lat) // 2] / 1e3
            sample[f"{key}_p99_us"] = lat[int(len(lat) * 0.99)] / 1e3
            if key == "alone":
                sleeps = (p.d.request(5_000_000 + k, "sleep", {"ms": 25_000}) for k in range(opts.sleepers))
                p.write_all(b"".join(sleeps))
                time.sleep(0.2)
    return sample


def run_hol(spec, opts):
    """Echo, one at a time, beside one sleeping request."""
    with running(spec, opts) as p:
        sleep_id, first = 9_000_000, FIRST_ID
        frames = small_frames(p.d, 100_000, first)
        asleep = p.d.request(sleep_id, "sleep", {"ms": opts.sleep_ms})
        lat = []
        slept = None
        i = 0
        t0 = NS()
        p.write_all(asleep)
        while slept is None and i < len(frames):
            t = NS()
            p.write_all(frames[i])
            want, answered = first + i, False
            while not answered:
                data = os.read(p.r, CHUNK)
                if not data:
                    raise BenchError("server closed its output\n" + p.stderr())
                for body in p.framer.feed(data):
                    if b"%d" % sleep_id in body:
                        slept = (NS() - t0) / 1e6
                    elif b"%d" % want in body:
                        lat.append((NS() - t) / 1e3)
                        answered = True
            i += 1
        if slept is None:
            p.read_reply(sleep_id)
            slept = (NS() - t0) / 1e6
        lat.sort()
        # and many sleepers at once: what runs side by side, and does echo still get through?
        many = opts.sleepers
        t0 = NS()
        p.write_all(b"".join(p.d.request(5_000_000 + k, "sleep", {"ms": 100}) for k in range(many)))
        t_echo = NS()
        p.write_all(small_frames(p.d, 1, 6_000_000)[0])
        left, beside = many, None
        while left or beside is None:
            data = os.read(p.r, CHUNK)
            if not data:
                raise BenchError("server closed its output\n" + p.stderr())
            for body in p.framer.feed(data):
                if b"6000000" in body:
                    beside = (NS() - t_echo) / 1e6
                else:
                    left -= 1
        all_ms = (NS() - t0) / 1e6
    return {
        "echoes": len(lat),
        "p50_us": lat[len(lat) // 2],
        "p99_us": lat[int(len(lat) * 0.99)],
        "max_ms": lat[-1] / 1e3,
        "sleep_ms": slept,
        "sleepers_ms": all_ms,
        "echo_beside_sleepers_ms": beside,
    }


def scenario_list(opts) -> list[tuple]:
    """(key, title, function, keyword arguments, rounds, columns)"""
    out = []
    want = opts.scenario
    if "cold" in want:
        cols = [
            ("ms", "spawn to first reply, ms", 1),
            ("cpu_ms", "server CPU, ms", 1),
            ("peak_rss_mb", "peak RSS, MB", 1),
            ("exit_ms", "EOF to exit, ms", 1),
        ]
        out.append(("cold", "1 cold start", run_cold, {}, opts.cold_runs, cols))
    if "latency" in want:
        cols = [("p50_us", "p50, us", 1), ("p99_us", "p99, us", 1), ("server_cpu_us", "server CPU per request, us", 1)]
        for where in opts.placements:
            title = f"2 ping-pong, {opts.pings} requests, client and server CPU: {where}"
            out.append((f"latency_{where}", title, run_latency, {"placement": where}, opts.rounds, cols))
    rate = [
        ("rps", "requests/s", 0),
        ("server_cpu_s_per_1k", "server CPU s per 1k", 4),
        ("server_cores", "server cores", 2),
        ("client_cpu_share", "client cores", 2),
        ("peak_rss_mb", "peak RSS, MB", 1),
    ]
    if "throughput" in want:
        for window in opts.windows:
            label = window or "unlimited"
            title = f"3 pipelined, {opts.requests} requests, window {label}"
            out.append((f"throughput_w{label}", title, run_throughput, {"window": window}, opts.rounds, rate))
    if "big" in want:
        cols = [
            ("mb_s", "MB/s, both ways", 1),
            ("ms", "round trip, ms", 1),
            ("server_cpu_ms", "server CPU, ms", 1),
            ("peak_rss_mb", "peak RSS, MB", 1),
        ]
        for kind in opts.big_kinds:
            for mb in opts.big_mb:
                title = f"4 big payload, {kind}, {mb} MB"
                out.append((f"big_{kind}_{mb}", title, run_big, {"kind": kind, "mb": mb}, opts.rounds, cols))
    if "memory" in want:
        cols = [
            ("rss_mb", "RSS, MB", 1),
            ("pss_mb", "PSS, MB", 1),
            ("private_mb", "private, MB", 1),
            ("threads", "threads", 0),
            ("idle_cpu_ms_per_s", "idle CPU, ms/s", 2),
        ]
        out.append(("idle", "5a idle", run_idle, {}, min(3, opts.rounds), cols))
        cols = [
            ("accepted_in_stall", "frames taken in stall", 0),
            ("peak_in_stall_mb", "peak RSS in stall, MB", 1),
            ("growth_mb", "growth to peak, MB", 1),
            ("rss_after_mb", "RSS after, MB", 1),
            ("drain_ms", "drain, ms", 0),
        ]
        for pad in opts.burst_pad:
            title = f"5b burst of {opts.burst}, reader stalls {opts.stall} s, {pad or 'small'} bytes"
            out.append((f"burst_{pad}", title, run_burst, {"pad": pad}, min(3, opts.rounds), cols))
    if "scaling" in want:
        for n in opts.sizes:
            title = f"6 scaling, {n} requests, window 256"
            out.append((f"scaling_{n}", title, run_throughput, {"n": n}, min(3, opts.rounds), rate[:3] + rate[4:]))
    if "long" in want:
        cols = [
            *((f"rss_{part}_mb", f"RSS after {part}/4, MB", 1) for part in range(5)),
            *((f"cpu_us_{part}", f"server CPU per request in {part}/4, us", 2) for part in range(1, 5)),
        ]
        out.append(
            ("long", f"8 {opts.long} requests in one process, window 256", run_long, {}, min(3, opts.rounds), cols)
        )
    if "sleepers" in want:
        cols = [
            (f"{key}_{what}_us", f"{key}, {text}, us", 1)
            for what, text in (("p50", "p50"), ("p99", "p99"), ("cpu", "server CPU"))
            for key in ("alone", "beside")
        ]
        title = f"9 ping-pong alone, and beside {opts.sleepers} sleeping requests"
        out.append(("sleepers", title, run_sleepers, {}, opts.rounds, cols))
    if "hol" in want:
        cols = [
            ("p50_us", "echo p50, us", 1),
            ("p99_us", "echo p99, us", 1),
            ("max_ms", "echo max, ms", 1),
            ("sleep_ms", "sleep took, ms", 1),
            ("sleepers_ms", f"{opts.sleepers} x sleep(100), ms", 0),
            ("echo_beside_sleepers_ms", "echo beside them, ms", 1),
        ]
        title = f"7 head of line: echo beside sleep({opts.sleep_ms})"
        out.append(("hol", title, run_hol, {}, min(3, opts.rounds), cols))
    return out
