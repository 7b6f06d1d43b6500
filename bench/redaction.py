"""Measures the scrubber: megabytes a second over log text, microseconds for a plain line, milliseconds for hostile input.

    python bench/redaction.py [--no-fast] [--all] [--secrets N]

`--no-fast` leaves `ahocorasick_rs` unused where it is installed, `--all` lists every hostile input, `--secrets` registers so
many secrets first, of many kinds: random, of words, of several lines, of one character repeated.
Figures are CPU time, the best of several runs, so that other work on the machine matters less.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import uuid
from collections.abc import Callable

from discreet.errors.redaction import Scrubber

HOSTILE_CHARACTERS = 128 * 1024
PLAIN = "2026-01-15 12:00:01,123 INFO [main] org.example.Application - Started server in 3.217 seconds on node a"
WORDS = (
    "user session cache worker queue started finished request response timeout retry failed connection closed".split()
)


def log_lines(count: int, seed: int = 7) -> list[str]:
    """Lines as services write them; about one in twenty holds a secret, one in eight a path."""
    draw = random.Random(seed)

    def digits(number: int) -> str:
        return "".join(draw.choices("0123456789abcdef", k=number))

    def words(number: int) -> str:
        return " ".join(draw.choices(WORDS, k=number))

    def line() -> str:
        stamp = f"2026-01-{draw.randint(1, 28):02} {draw.randint(0, 23):02}:{draw.randint(0, 59):02}:07,{draw.randint(0, 999):03}"
        identity = uuid.UUID(int=draw.getrandbits(128))
        address = ".".join(str(draw.randint(1, 254)) for _ in range(4))
        kinds: list[Callable[[], str]] = [
            lambda: f"{stamp} INFO [worker-{draw.randint(1, 9)}] com.example.app.Service - {words(9)}",
            lambda: f"{stamp} DEBUG {words(4)} request_id={identity} duration_ms={draw.randint(1, 999)} status=200",
            lambda: (
                f'{address} - - [{stamp}] "GET /api/v1/users/{draw.randint(1, 99)} HTTP/1.1" 200 {draw.randint(9, 99999)}'
            ),
            lambda: f'{{"time": "{stamp}", "level": "info", "event": "{words(3)}", "id": {draw.randint(1, 99999)}}}',
            lambda: f"{stamp} WARN {words(6)} commit {digits(40)} on branch main",
            lambda: (
                f"{stamp} INFO fetched https://example.com/{words(1)}/{draw.randint(1, 99)}?page=2&sort=asc in 12 ms"
            ),
            lambda: f'  File "/srv/app/service/{words(1)}.py", line {draw.randint(1, 999)}, in {words(1)}',
            lambda: (
                f"{stamp} ERROR {words(5)} token={digits(24)} {words(2)}"
                if draw.random() < 0.4
                else f"{stamp} {words(9)}"
            ),
        ]
        return draw.choice(kinds)()

    return [line() for _ in range(count)]


def hostile(size: int = HOSTILE_CHARACTERS) -> dict[str, str]:
    """Inputs that make careless patterns slow, all of one size."""
    draw = random.Random(7)
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    pieces = [
        "a", "=", '"', "'", "/", "\\", "-", " ", "\n", ":", "@", "@:/", "://", "://a@", "-----BEGIN ", "token=", "token: ",
        "key ", "key: a ", '"key": ', "password is ", "eyJ", "sk-", "ghp_", "AKIA", "a/", "/a", "C:\\", "C:\\a ", "a:/",
        "\\\\a\\", "~a/", "/a A ", "../", "file:/", "curl -u ", "mysql -p", "docker login ", "redis-cli ", "ldapsearch ",
        "Bearer ", "Authorization: ", "Cookie: a=", "{\"a\":", "[[", "<a>", "&a=", ",a=", "\\\"", "\\\\\"token\\\\\": ",
        "%3A%2F%2F", "aB1", "1:2", "a.b.", "é", "İ", "\ud800", "\0", "x=y&", "key=", "key1=", "k1K=", 'key="', 'key=["', 'pw=["',
        "--password ", "--p", "-p ", "$2a$",
        "password for a ", "password set to a1 ", "<password a='b' ", "<password a='b'", "<a name=\"password\">",
        "AUTH a ", "AUTH ",
        "insert into a (password) values ('a'),", "insert into a (password", "insert ", "password,a\n", "a,password\nb,c1\n",
        "| password |\n", "| password | a1 ", "password  a\n", "passwords:\n- a1\n", "- a1\n", "tokens = [\n", "echo a ",
        "net use a a ",
        "identified by ", "['mysql', '-p', ", "'-u', 'a:", "a1 as the password ", "&#65;", "%41", "\\u0041", "\\x41",
        "cookie:\n a=b\n",
        "password = \"\"\"\n", "password = a b ", "password=a b;", "a;password=b c", "password: [a1, ", "&lt;password&gt;",
        "token:\n a1b2c3\n",
        "</key><string>", "setuser a >", "<redacted> to ", "://a:b", "://a:b@/",
    ]  # fmt: skip
    inputs = {repr(piece)[:24]: (piece * (size // len(piece) + 1))[:size] for piece in pieces}
    inputs["base64"] = "".join(draw.choices(alphabet, k=size))
    inputs["printable noise"] = "".join(draw.choices([chr(code) for code in range(32, 127)], k=size))
    inputs["noise in lines"] = "".join(draw.choices("token=key: \"'/\\\n-_.:@ab1", k=size))
    return inputs


def secrets(count: int) -> list[str]:
    """Values to register, as programs have them and as they are unfavourable for a search."""
    draw = random.Random(7)
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

    def text(size: int) -> str:
        return "".join(draw.choices(alphabet, k=size))

    kinds: list[Callable[[], str]] = [
        lambda: text(40),
        lambda: text(8),
        lambda: "-".join(draw.choices(WORDS, k=4)),
        lambda: "\n".join(text(64) for _ in range(4)),
        lambda: "a" * draw.randint(8, 60) + text(3),
        lambda: f"postgres://app:{text(20)}@db.example.com/app",
        lambda: draw.choice(' /=:.-"\\') * 12 + text(4),
    ]
    return [kinds[number % len(kinds)]() for number in range(count)]


def best(work: Callable[[], object], runs: int) -> float:
    """Seconds of the fastest run."""
    times = []
    for _ in range(runs):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--no-fast", action="store_true")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--secrets", type=int, default=0)
    options = parser.parse_args()
    write = sys.stdout.write
    start = time.process_time()
    scrubber = Scrubber(fast=not options.no_fast)
    scrubber.scrub(PLAIN)
    write(f"first text, patterns compiled: {(time.process_time() - start) * 1e3:.0f} ms\n")
    if options.secrets:
        start = time.process_time()
        for secret in secrets(options.secrets):
            scrubber.register(secret)
        write(f"{options.secrets} secrets registered: {(time.process_time() - start) * 1e3:.0f} ms\n")
        start = time.process_time()
        scrubber.scrub(PLAIN)
        write(f"first text after them: {(time.process_time() - start) * 1e3:.0f} ms\n")

    lines = log_lines(10_000)
    text = "\n".join(lines)
    megabytes = len(text.encode()) / 1e6
    write(f"log text, line by line: {megabytes / best(lambda: [scrubber.scrub(line) for line in lines], 3):.1f} MB/s\n")
    write(f"log text, in one piece: {megabytes / best(lambda: scrubber.scrub(text), 3):.1f} MB/s\n")
    plain = best(lambda: [scrubber.scrub(PLAIN) for _ in range(2000)], 5) / 2000
    write(f"plain line of {len(PLAIN)} characters: {plain * 1e6:.1f} µs\n")

    results = sorted(((best(lambda t=t: scrubber.scrub(t), 2), name) for name, t in hostile().items()), reverse=True)
    write(f"hostile input of {HOSTILE_CHARACTERS // 1024} KiB, {len(results)} kinds, slowest first:\n")
    for seconds, name in results if options.all else results[:12]:
        write(f"  {seconds * 1e3:6.1f} ms  {name}\n")


if __name__ == "__main__":
    main()
