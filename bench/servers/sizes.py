"""What a kept task takes in PostgreSQL and Redis, and what a send costs the server: for planning how much is needed.

sizes.py [--stores postgresql,redis] [--json FILE]

Tasks are sent to a daemon by HTTP. bench/README.md says what is measured.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

from agents_requests import Requests
from daemons import daemon
from load import post, send
from servers import Postgres, Redis, postgres, redis
from stdio_machine import cpu_clock

CONNECTIONS = 32


class Kind(NamedTuple):
    """Tasks of one message and one artifact, in so many chunks of random text, which no server compresses."""

    name: str
    chunks: int
    size: int
    count: int

    @property
    def text(self) -> str:
        return f"random {self.chunks} {self.size}"


KINDS = (Kind("small", 1, 100, 5000), Kind("medium", 18, 570, 1000), Kind("large", 998, 1050, 40))


def sent(port: int, kind: Kind, count: int, connections: int = CONNECTIONS) -> float:
    """Seconds that it took."""
    requests = Requests("1.0")
    requests.number = time.monotonic_ns()
    texts = [post(port, "1.0", requests.send(kind.text)) for _ in range(count)]
    return asyncio.run(send(port, texts, connections=min(connections, count))).seconds


# -- PostgreSQL ------------------------------------------------------------------------------------------------

_SIZES = """
    SELECT t.relname, 'rows', pg_relation_size(t.oid) FROM pg_class t WHERE t.relnamespace = 'discreet'::regnamespace
        AND t.relkind = 'r'
    UNION ALL SELECT t.relname, 'toast', pg_total_relation_size(t.reltoastrelid) FROM pg_class t
        WHERE t.relnamespace = 'discreet'::regnamespace AND t.relkind = 'r' AND t.reltoastrelid <> 0
    UNION ALL SELECT t.relname, i.relname, pg_relation_size(i.oid) FROM pg_class t JOIN pg_index ON indrelid = t.oid
        JOIN pg_class i ON i.oid = indexrelid WHERE t.relnamespace = 'discreet'::regnamespace
"""
_WAL = """
    SELECT wal_records, wal_bytes, wal_fpi, wal_sync,
        (SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()) FROM pg_stat_wal
"""


def sizes(connection: Any) -> dict[str, int]:
    return {f"{table}: {part}": int(size) for table, part, size in connection.execute(_SIZES)}


def in_postgres(server: Postgres, kind: Kind) -> dict[str, float]:
    """Bytes of one task, by table and index: as it is after a vacuum, and as it would be if written anew."""
    url = server.new_database()
    with daemon(url) as running, server.connect(url) as connection:
        sent(running.port, kind, 3)
        before = sizes(connection)
        sent(running.port, kind, kind.count)
        connection.execute("VACUUM")
        after = sizes(connection)
        connection.execute("VACUUM FULL")
        dense = sizes(connection)
    found = {name: (size - before[name]) / kind.count for name, size in after.items() if size > before[name]}
    return {**found, "all": sum(found.values()), "all, if written anew": sum(dense.values()) / kind.count}


def cost_in_postgres(server: Postgres, kind: Kind, connections: int) -> dict[str, float]:
    """What one task costs: bytes of WAL, transactions, CPU."""
    url = server.new_database()
    with daemon(url) as running, server.connect(url) as connection:
        sent(running.port, kind, max(2, kind.count // 10), connections)
        connection.execute("CHECKPOINT")
        time.sleep(1.5)  # until the server's processes have told of what they did
        before, daemon_cpu, cpu = connection.execute(_WAL).fetchone(), cpu_clock([running.pid]), server.cpu()
        count = kind.count if connections > 1 else max(2, kind.count // 10)
        seconds = sent(running.port, kind, count, connections)
        daemon_cpu, cpu = cpu_clock([running.pid]) - daemon_cpu, server.cpu() - cpu
        time.sleep(1.5)
        records, written, pages, syncs, commits = (
            float(now - then) for now, then in zip(connection.execute(_WAL).fetchone(), before, strict=True)
        )
        return {
            "a second": count / seconds,
            "transactions": commits / count,
            "fsyncs": syncs / count,
            "fsyncs a second": syncs / seconds,
            "WAL records": records / count,
            "WAL bytes": written / count,
            "whole pages in WAL": pages / count,
            "CPU ms, daemon": daemon_cpu / count * 1e3,
            "CPU ms, PostgreSQL": cpu / count * 1e3,
        }


# -- Redis -----------------------------------------------------------------------------------------------------


def in_redis(server: Redis, kind: Kind) -> dict[str, float]:
    """Bytes of memory and of the append-only file for one task, by the first word of the key."""
    import redis as client

    url = server.new_database()
    with daemon(url) as running, client.Redis.from_url(url) as connection:
        sent(running.port, kind, 3)
        before, written = int(connection.info("memory")["used_memory_dataset"]), server.written()
        cpu = server.cpu()
        count = max(2, kind.count // 5)
        seconds = sent(running.port, kind, count)
        found: dict[str, float] = defaultdict(float)
        found["CPU ms, Redis"] = (server.cpu() - cpu) / count * 1e3
        found["a second"] = count / seconds
        found["bytes appended to the file"] = (server.written() - written) / count
        found["all, of Redis' data"] = (int(connection.info("memory")["used_memory_dataset"]) - before) / count
        for key in connection.scan_iter(count=1000):
            size = connection.memory_usage(key, samples=0)
            name = ":".join(part for part in key.decode(errors="replace").split(":") if len(part) < 30)
            found[f"keys {name}"] += (size or 0) / count
    return found


def table(found: dict[str, dict[str, float]]) -> list[str]:
    names = [*found]
    rows = dict.fromkeys(row for by_row in found.values() for row in by_row)
    lines = [f"| | {' | '.join(names)} |", "| --- " * (len(names) + 1) + "|"]
    lines += [f"| {row} | {' | '.join(_number(found[name].get(row)) for name in names)} |" for row in rows]
    return [*lines, ""]


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--stores", default="postgresql,redis")
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    report: dict[str, dict[str, dict[str, float]]] = {}
    if "postgresql" in args.stores:
        with postgres() as server:
            report["bytes of a kept task in PostgreSQL"] = {kind.name: in_postgres(server, kind) for kind in KINDS}
            report["cost of a task in PostgreSQL"] = {
                f"{kind.name}, {connections} at a time": cost_in_postgres(server, kind, connections)
                for kind in KINDS
                for connections in (1, CONNECTIONS)
            }
    if "redis" in args.stores:
        with redis() as other:
            report["bytes of a kept task in Redis"] = {kind.name: in_redis(other, kind) for kind in KINDS}
    if args.json:
        Path(args.json).write_text(json.dumps(report, indent=1), encoding="utf-8")
    for title, found in report.items():
        print(f"**{title}**\n", *table(found), sep="\n")


if __name__ == "__main__":
    main()
