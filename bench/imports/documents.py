"""Imports the documents of `corpus.py` and prints tables: what is imported of each, how long it takes, and how much memory.

    python documents.py [--folder DIR] [--raw FILE] [--starts N] [NAME …]

Needs `discreet[openapi]` and nothing else: what else is installed (trio, h2) is loaded with httpcore and falsifies the first
call. The folder keeps the documents. Each figure is from a process of its own; one that reads a document has an empty cache or
one that another process filled. Figures of shared machines vary; the CPU time varies least. Linux.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Any

from corpus import CORPUS, fetch
from daemons import Daemon

HERE = Path(__file__).resolve().parent
MODES = ("facts", "cold", "warm", "trace")
PROBE_SECONDS = 300
MB = 1e6


def run(program: str, *words: str, cache: Path) -> dict[str, Any]:
    """What one of the programs here says of a document."""
    done = subprocess.run(
        [sys.executable, str(HERE / program), *words],
        env={**os.environ, "XDG_CACHE_HOME": str(cache)},
        capture_output=True,
        text=True,
        timeout=PROBE_SECONDS,
        check=False,
    )
    try:
        return json.loads(done.stdout)
    except ValueError:
        return {"failed": done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"status {done.returncode}"}


def measure(path: Path, starts: int) -> dict[str, Any]:
    with TemporaryDirectory() as folder:
        cache = Path(folder)
        found = {
            mode: run("probe.py", mode, str(path), cache=cache / ("c" if mode != "trace" else "t")) for mode in MODES
        }
        if "failed" in found["cold"]:
            return found
        found["first"] = run("first.py", str(path), cache=cache)
        found["starts"] = start(path, cache / "c", starts)
    return found


def start(path: Path, cache: Path, times: int) -> dict[str, list[tuple[float, float]]]:
    """Seconds, and those of the CPU, from the spawn of a daemon to its first reply: they take turns. `coroutine` is the first
    call of a coroutine in the daemon without an import, for which it loads what a coroutine needs."""
    found: dict[str, list[tuple[float, float]]] = {"none": [], "warm": [], "cold": [], "coroutine": []}
    with TemporaryDirectory() as folder:
        for turn in range(times):
            for kind in ("none", "warm", "cold"):
                if kind == "cold" and turn:
                    continue
                empty = Path(folder) / f"empty{turn}"
                document = None if kind == "none" else path
                with Daemon(Path(folder), empty if kind == "cold" else cache, document, "http://127.0.0.1:9") as daemon:
                    found[kind].append(daemon.started())
                    if kind == "none":
                        ran, began = daemon.cpu(), time.perf_counter()
                        daemon.call("sleep", {"ms": 0})
                        found["coroutine"].append((time.perf_counter() - began, daemon.cpu() - ran))
    return found


# -- the tables ----------------------------------------------------------------------------------------------------


def table(head: str, rows: Iterable[list[str]]) -> str:
    names = head.split(" | ")
    return "\n".join(
        [f"| {head} |", "| --- |" + " ---: |" * (len(names) - 1), *(f"| {' | '.join(row)} |" for row in rows)]
    )


def what(name: str, label: str, found: dict[str, Any]) -> list[str]:
    facts = found["facts"]
    if "failed" in facts or "failed" in found["cold"]:
        reason = facts.get("failed") or found["cold"]["failed"]
        return [name, label, *[""] * 6, reason.replace("|", "\\|")]
    out = ", ".join(f"{count} × {reason}" for reason, count in facts["left_out"].items()) or "–"
    return [
        name,
        label,
        facts["openapi"],
        f"{facts['bytes'] / MB:.2f}",
        f"{facts['operations']:,} of {facts['declared_operations']:,}",
        f"{facts['errors']:,} of {facts['declared_errors']:,}",
        f"{facts['schemas'] - facts['invalid_schemas']:,} of {facts['schemas']:,}",
        f"{facts['renamed']:,} / {facts['changed']:,}",
        out.replace("|", "\\|"),
    ]


def cost(name: str, found: dict[str, Any]) -> list[str]:
    size = found["facts"]["bytes"]
    cold, warm, trace = found["cold"], found["warm"], found["trace"]

    def per_byte(kind: str, which: dict[str, Any]) -> str:
        return f"{max(0, which[kind]) / size:.1f}"

    return [
        name,
        f"{size / MB:.2f}",
        *(f"{each['seconds']:.2f} ({each['cpu']:.2f})" for each in (cold, warm)),
        f"{cold['cpu'] / size * MB:.2f}",
        *(f"{per_byte('peak', each)} / {per_byte('after', each)}" for each in (cold, warm, trace)),
    ]


def running(name: str, found: dict[str, Any]) -> list[str]:
    starts, first = found["starts"], found["first"]
    walls = {kind: statistics.median(each[0] for each in values) * 1000 for kind, values in starts.items()}
    cpus = {kind: statistics.median(each[1] for each in values) * 1000 for kind, values in starts.items()}
    calls = ["failed", "", "", ""]
    if first.get("others"):
        right = first["calls"] - len(first["wrong"])
        calls = [
            *(
                f"{statistics.median(each[0] for each in first[kind]):.1f} "
                f"({statistics.median(each[1] for each in first[kind]):.1f})"
                for kind in ("first", "others", "again")
            ),
            f"{right} of {first['calls']}",
        ]
    return [
        name,
        *(f"{walls[kind]:.0f} ({cpus[kind]:.0f})" for kind in ("none", "warm", "cold")),
        f"{(cpus['warm'] / cpus['none'] - 1) * 100:+.0f} %",
        f"{walls['coroutine']:.0f} ({cpus['coroutine']:.0f})",
        *calls,
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description="Imports OpenAPI documents of others and says what that takes.")
    parser.add_argument("names", nargs="*", help="documents; all of them without")
    parser.add_argument("--folder", type=Path, default=Path(gettempdir()) / "discreet-openapi-documents")
    parser.add_argument("--raw", type=Path, help="a file for all figures as JSON; those that are there stay")
    parser.add_argument("--starts", type=int, default=7)
    options = parser.parse_args()
    paths = fetch(options.folder, tuple(options.names))
    results: dict[str, Any] = {}
    if options.raw and options.raw.exists():
        results = json.loads(options.raw.read_text())
    for name, path in paths.items():
        if name not in results:
            results[name] = measure(path, options.starts)
            print(name, file=sys.stderr)
            if options.raw:
                options.raw.write_text(json.dumps(results))
    chosen = {source.name: source for source in CORPUS if source.name in paths}
    fine = {name: results[name] for name in chosen if "starts" in results[name]}
    head = "document | package | OpenAPI | MB | operations | errors | valid schemas | renamed / changed | left out"
    print(table(head, [what(name, chosen[name].package.label, results[name]) for name in chosen]))
    head = "document | MB | cold, s (CPU) | warm | CPU s/MB, cold | RSS ×, peak / after, cold | warm | Python's ×, cold"
    print("\n" + table(head, [cost(name, found) for name, found in fine.items()]))
    head = "document | no import, ms (CPU) | warm | cold | warm to none, CPU | first coroutine without import, ms (CPU)"
    head += " | first call, ms (CPU) | of others | again | right"
    print("\n" + table(head, [running(name, found) for name, found in fine.items()]))


if __name__ == "__main__":
    main()
