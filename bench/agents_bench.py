"""Measures agents: discreet beside a2a-sdk, all in one run. `bench/agents` sets it up; bench/README.md says what it measures.

agents_bench.py [--json FILE] [--rounds N] [--only SCENARIO,…] [--quick]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from stdio_machine import machine_busy, wait_quiet

HERE = Path(__file__).parent
SECONDS = 900
NAMES = {
    "discreet": "discreet, stdio",
    "discreet-inside": "discreet, in process",
    "sdk-1": "a2a-sdk 1",
    "sdk-0.3": "a2a-sdk 0.3",
}
OURS = ("discreet", "discreet-inside")


class Plan(NamedTuple):
    """A scenario, what it is given, and who takes part. `key` is put before the names of its figures."""

    scenario: str
    options: dict[str, Any]
    contestants: tuple[str, ...] = tuple(NAMES)
    key: str = ""
    sdk: dict[str, Any] = {}  # noqa: RUF012 - never changed: what is different for those who are slower


PLANS = [
    Plan("send", {"count": 5000}, sdk={"count": 1000}),
    Plan("get", {"count": 5000}),
    Plan("list", {"tasks": 10_000, "count": 300}, ("discreet", "discreet-inside", "sdk-1"), "10000_"),
    Plan("list", {"tasks": 100_000, "count": 300}, ("discreet",), "100000_"),
    Plan("sqlite-list", {"tasks": 10_000, "count": 300}, ("discreet",), "sqlite_"),
    Plan("parked", {"tasks": 10_000}),
    Plan("parked", {"tasks": 10_000, "trace": 1}, ("discreet-inside", "sdk-1", "sdk-0.3"), sdk={"tasks": 2000}),
    Plan("stream", {"counts": "2500,5000,10000,20000", "size": 4096}),
    Plan("sqlite", {"count": 5000, "senders": 64}, sdk={"count": 300}),
    Plan("start", {"spawned": 0.0}, ("discreet", "sdk-1", "sdk-0.3")),
    Plan("first", {}, ("discreet", "sdk-1", "sdk-0.3")),
]


class Row(NamedTuple):
    """A line of the table. `least` targets are lower bounds."""

    key: str
    title: str
    target: float | None = None
    least: bool = False


LISTS = ("first", "context", "status", "after", "deep", "deep_context")
ROWS = [
    Row("send_1_cpu_ms", "send, one after the other, CPU ms", 0.15),
    Row("send_32_cpu_ms", "send, 32 at a time, CPU ms", 0.15),
    Row("get_1_cpu_ms", "get, one after the other, CPU ms", 0.05),
    Row("get_32_cpu_ms", "get, 32 at a time, CPU ms", 0.05),
    *(
        Row(f"{key}list_{name}_cpu_ms", f"list, {title}, {name.replace('_', ' and ')}, CPU ms", 0.5)
        for key, title in (("10000_", "10,000"), ("100000_", "100,000"), ("sqlite_", "10,000 in SQLite"))
        for name in LISTS
    ),
    Row("parked_rss_bytes", "a task that waits for input, bytes of RSS", 2048),
    Row("parked_traced_bytes", "the same, bytes that Python counts", 2048),
    *(
        row
        for count in (2500, 5000, 10_000, 20_000)
        for row in (
            Row(f"stream_{count}_per_s", f"stream of {count:,} chunks of 4 KB, events/s", 20_000, least=True),
            Row(f"stream_{count}_cpu_us", f"stream of {count:,} chunks, CPU µs an event"),
        )
    ),
    Row("stream_ratio", "CPU time for twice the chunks (the worst doubling), ratio", 2.2),
    Row("sqlite_send_per_s", "send with SQLite, 64 at a time, a second", 2000, least=True),
    Row("sqlite_send_cpu_ms", "send with SQLite, CPU ms"),
    Row("sqlite_get_cpu_ms", "get with SQLite, CPU ms"),
    Row("start_ms", "from spawn to the first task, ms"),
    Row("first_call_ms", "first call of a process that is ready, ms"),
]


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Measures agents. DISCREET_A2A_V1 and DISCREET_A2A_V03 name the peers'."
    )
    parser.add_argument("--json", metavar="FILE", help="write every figure there, or to stdout as -")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="scenarios, with commas between")
    parser.add_argument("--quick", action="store_true", help="a tenth of everything, one round")
    args = parser.parse_args()
    pythons = _pythons()
    figures = _measured(pythons, args)
    report = {"machine": _machine(), "versions": _versions(pythons), "figures": figures}
    if args.json == "-":
        json.dump(report, sys.stdout, indent=1)
        return
    if args.json:
        Path(args.json).write_text(json.dumps(report, indent=1), encoding="utf-8")
    print("\n".join(_table(report)))


def _pythons() -> dict[str, str]:
    """The interpreter of each contestant that takes part."""
    ours = os.environ.get("DISCREET_PY", sys.executable)
    pythons = dict.fromkeys(OURS, ours)
    for name, variable in (("sdk-1", "DISCREET_A2A_V1"), ("sdk-0.3", "DISCREET_A2A_V03")):
        if variable in os.environ:
            pythons[name] = os.environ[variable]
        else:
            _say(f"{variable} is not set: {NAMES[name]} is left out")
    return pythons


def _measured(pythons: dict[str, str], args: argparse.Namespace) -> dict[str, dict[str, list[float]]]:
    """The figures of every round: by row, by contestant. Contestants take turns, another first in each round."""
    figures: dict[str, dict[str, list[float]]] = {}
    wanted = set(filter(None, args.only.split(",")))
    for round_number in range(1 if args.quick else args.rounds):
        for plan in PLANS:
            if wanted and plan.scenario not in wanted:
                continue
            names = [name for name in plan.contestants if name in pythons]
            turn = round_number % len(names)
            for name in names[turn:] + names[:turn]:
                options = plan.options | ({} if name in OURS else plan.sdk)
                found = _one(pythons[name], name, plan.scenario, _smaller(options) if args.quick else options)
                for key, value in found.items():
                    figures.setdefault(_named(plan, key), {}).setdefault(name, []).append(value)
    return figures


def _named(plan: Plan, key: str) -> str:
    return plan.key + key if key.startswith("list_") else key


def _smaller(options: dict[str, Any]) -> dict[str, Any]:
    smaller = {
        key: value // 10 if key in ("count", "tasks") and value >= 1000 else value for key, value in options.items()
    }
    if "counts" in options:
        smaller["counts"] = "2500,5000"
    return smaller


def _one(python: str, name: str, scenario: str, options: dict[str, Any]) -> dict[str, float]:
    """One contestant, one scenario, one process; nothing where it fails, which is told."""
    waited = wait_quiet(3.0)
    busy = machine_busy()
    if "spawned" in options:
        options = {**options, "spawned": time.clock_gettime(time.CLOCK_MONOTONIC)}
    command = [python, "agents_scenarios.py", name, scenario, *(f"{key}={value}" for key, value in options.items())]
    environment = {key: value for key, value in os.environ.items() if name in OURS or not key.startswith("PYTHON")}
    began = time.monotonic()
    try:
        done = subprocess.run(
            command, cwd=HERE, env=environment, capture_output=True, text=True, timeout=SECONDS, check=True
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as exc:
        _say(f"{name} {scenario}: {exc}\n{(exc.stderr or '')[-2000:]}")
        return {}
    if name in OURS and scenario == "stream" and done.stderr:
        _say(done.stderr[-600:])
    seconds = time.monotonic() - began
    cores = (machine_busy() - busy) / seconds
    _say(f"{name:16} {scenario:12} {seconds:6.1f} s, {cores:.1f} cores busy, waited {waited:.1f} s")
    found: dict[str, float] = json.loads(done.stdout)
    times = [value for key, value in found.items() if key.endswith("_cpu_s")]
    if len(times) > 1:
        found["stream_ratio"] = max(later / earlier for earlier, later in pairwise(times))
    return found


def _table(report: Any) -> list[str]:
    figures = report["figures"]
    names = [name for name in NAMES if any(name in found for found in figures.values())]
    lines = [report["machine"], "; ".join(report["versions"]), ""]
    lines.append(" | ".join(["| figure", "target", *(NAMES[name] for name in names), "discreet over stdio |"]))
    lines.append("| --- " * (len(names) + 3) + "|")
    for row in ROWS:
        found = {name: statistics.median(values) for name, values in figures.get(row.key, {}).items()}
        if found:
            cells = [_number(found[name]) if name in found else "–" for name in names]
            lines.append(f"| {row.title} | {_target(row)} | {' | '.join(cells)} | {_verdict(row, found)} |")
    return lines


def _target(row: Row) -> str:
    return "" if row.target is None else f"{'≥' if row.least else '≤'} {row.target:,g}"


def _verdict(row: Row, found: dict[str, float]) -> str:
    if row.target is None:
        return ""
    value = found.get("discreet", found.get("discreet-inside"))
    if value is None:
        return "**missed**"
    return "met" if (value >= row.target if row.least else value <= row.target) else "**missed**"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _machine() -> str:
    return f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}, CPython {platform.python_version()}"


def _versions(pythons: dict[str, str]) -> list[str]:
    """What each interpreter has installed."""
    show = (
        "import importlib.metadata as m, sys; print(m.version(sys.argv[1]), '(CPython', sys.version.split()[0] + ')')"
    )
    versions = []
    for name, package in (("discreet", "discreet"), ("sdk-1", "a2a-sdk"), ("sdk-0.3", "a2a-sdk")):
        if name in pythons:
            done = subprocess.run([pythons[name], "-c", show, package], capture_output=True, text=True, check=False)
            versions.append(f"{package} {done.stdout.strip() or 'from its sources'}")
    return versions


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
