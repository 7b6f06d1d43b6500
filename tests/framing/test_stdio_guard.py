"""Only frames go to stdout, only the daemon reads stdin, and stray output is passed on."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from discreet.framing.stdio_guard import MAX_HELD_TEXTS, stdin_hint
from support.waits import DEADLINE_SECONDS

BUFFERED = {"PYTHONUNBUFFERED": ""}
"""Python as users start it, whatever the test run's own environment says."""

BEGIN = """
import json, os, subprocess, sys
from discreet.framing.stdio_guard import flush_text_streams, redirect, restore
from discreet.framing.stdio_guard import StrayOutputReader

streams = redirect()
reader = StrayOutputReader(streams.stray_out, streams.stray_err)
reader.start()
texts = []

def listen():
    reader.deliver_to(lambda stream, text: texts.append([stream, text]))

def report(*facts):
    flush_text_streams()
    assert reader.drain(60)
    os.write(streams.stdout, json.dumps([texts, *facts]).encode())
"""


def run(body: str, *, before: str = "", redirection: str = "", stdin: bytes = b"", **environment: str) -> list[Any]:
    """Run a guarded program; returns what it reported: the stray texts, then its own facts.

    Its stdout holds the report alone, or this fails.
    """
    child = subprocess.run(
        ["/bin/sh", "-c", f'exec "$@" {redirection}', "sh", sys.executable, "-P", "-c", before + BEGIN + body],
        input=stdin,
        capture_output=True,
        timeout=DEADLINE_SECONDS,
        env={**os.environ, **BUFFERED, **environment},
        check=False,
    )
    assert child.returncode == 0, child.stderr
    assert child.stderr == b""
    report: list[Any] = json.loads(child.stdout)  # each test knows the shape that its program reported
    return report


# -- who writes beside the protocol -----------------------------------------------------------------------------------


def test_prints_become_texts_and_never_reach_the_stream() -> None:
    (texts,) = run("""
listen()
print("to stdout")
print("to stderr", file=sys.stderr)
print("no line end", end="", file=sys.__stdout__)
report()
""")
    assert sorted(texts) == [["stderr", "to stderr"], ["stdout", "to stdout\nno line end"]]


def test_an_app_that_closes_its_streams_prints_on() -> None:
    (texts,) = run("listen()\nsys.stdout.close()\nsys.stderr.close()\nprint('still here')\nreport()\n")
    assert texts == [["stdout", "still here"]]


def test_a_native_library_is_caught_too() -> None:
    (texts,) = run("""
import ctypes
listen()
os.write(1, b"by number\\n")
libc = ctypes.CDLL(None)
libc.printf(b"by stdio\\n")
libc.fflush(None)
report()
""")
    assert texts == [["stdout", "by number\nby stdio"]]


def test_a_child_process_neither_writes_into_the_stream_nor_eats_from_it() -> None:
    texts, eaten, left = run(
        """
listen()
child = "import sys; print(len(sys.stdin.read())); print('oops', file=sys.stderr)"
subprocess.run([sys.executable, "-c", child], check=True)
report(len(sys.stdin.read()), os.read(streams.stdin, 100).decode())
""",
        stdin=b"a request",
    )
    assert sorted(texts) == [["stderr", "oops"], ["stdout", "0"]]
    assert (eaten, left) == (0, "a request")


def test_a_banner_at_import_time_is_kept_until_somebody_listens(tmp_path: Path) -> None:
    (tmp_path / "noisy.py").write_text("print('Welcome to noisy 1.0')\n")
    (texts,) = run(f"sys.path.insert(0, {str(tmp_path)!r})\nimport noisy\nflush_text_streams()\nlisten()\nreport()\n")
    assert texts == [["stdout", "Welcome to noisy 1.0"]]


@pytest.mark.parametrize("redirection", ["", "2>/dev/null"])
def test_what_python_held_back_before_the_start_does_not_reach_the_stream(redirection: str) -> None:
    (texts,) = run("listen()\nreport()\n", before="print('early', end='')\n", redirection=redirection)
    assert texts == [["stdout", "early"]]


def test_a_stdout_that_was_a_file_is_guarded_like_any_other(tmp_path: Path) -> None:
    target = tmp_path / "out"
    body = "listen()\nold.write('through the old object')\nold.flush()\nprint('through the new one')\nreport()\n"
    with target.open("wb") as stdout:
        subprocess.run(
            [sys.executable, "-P", "-c", "import sys\nold = sys.stdout\nprint('early')\n" + BEGIN + body],
            stdout=stdout,
            env={**os.environ, **BUFFERED},
            timeout=DEADLINE_SECONDS,
            check=True,
        )
    (texts,) = json.loads(target.read_bytes())
    assert texts == [["stdout", "early\nthrough the old objectthrough the new one"]]


def test_no_text_makes_print_fail_whatever_the_locale() -> None:
    (texts,) = run(
        "listen()\nprint('caf\\u00e9 \\udcff \\U0001f600')\nos.write(1, b'\\xff\\xfe\\n')\nreport()\n",
        PYTHONIOENCODING="ascii:strict",
        LC_ALL="C",
    )
    assert texts == [["stdout", "café \\udcff 😀\n\\xff\\xfe"]]


def test_floods_never_block_the_writer() -> None:
    texts, written = run("""
listen()
line = "x" * 99 + "\\n"
for _ in range(20_000):
    sys.stdout.write(line)
subprocess.run([sys.executable, "-c", "for _ in range(20_000): print('y' * 99)"], check=True)
report(20_000)
""")
    lines = [line for _, text in texts for line in text.splitlines()]
    assert lines == ["x" * 99] * written + ["y" * 99] * written


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a pipe can't be enlarged")
def test_a_native_library_may_write_much_while_it_keeps_every_thread_from_running() -> None:
    (texts,) = run("""
import ctypes
listen()
line = b"z" * 99 + b"\\n"
ctypes.PyDLL(None).write(1, line * 2_000, 200_000)
report()
""")
    assert sum(text.count("z") for _, text in texts) == 99 * 2_000


def test_a_flood_that_nobody_listens_to_blocks_nobody_and_is_bounded() -> None:
    (texts,) = run("""
for _ in range(20_000):
    print("x" * 99)
flush_text_streams()
assert reader.drain(60)
listen()
report()
""")
    assert len(texts) == MAX_HELD_TEXTS + 1


# -- the descriptors ------------------------------------------------------------------------------------------------

MISSING = ["<&-", "2>&-", "<&- 2>&-", "<&- 2>/dev/null"]


@pytest.mark.parametrize("redirection", MISSING)
def test_closed_descriptors_are_filled_and_nothing_private_lands_on_them(redirection: str) -> None:
    texts, numbers, read = run(
        """
listen()
print("out")
print("err", file=sys.stderr)
report([streams.stdin, streams.stdout, streams.stderr, streams.stray_out, streams.stray_err],
       [sys.stdin.read(), os.read(0, 10).decode(), os.read(streams.stdin, 10).decode()])
""",
        redirection=redirection,
    )
    assert sorted(texts) == [["stderr", "err"], ["stdout", "out"]]
    assert min(numbers) > 2
    assert len(set(numbers)) == 5
    assert read == ["", "", ""]


def test_children_inherit_nothing_private() -> None:
    _, inherited = run("""
from discreet.framing.transports.stdio import StdioTransport
transport = StdioTransport(streams.stdin, streams.stdout, closefd=False)
child = '''
import os
for fd in range(3, 100):
    try:
        os.fstat(fd)
    except OSError:
        continue
    print(fd)
'''
done = subprocess.run([sys.executable, "-c", child], close_fds=False, stdout=subprocess.PIPE, check=True)
report(done.stdout.decode())
""")
    assert inherited == ""


def test_the_descriptors_have_one_owner() -> None:
    _, refused = run("""
try:
    redirect()
except RuntimeError:
    report("refused")
""")
    assert refused == "refused"


@pytest.mark.parametrize("more", range(1, 7))
def test_a_redirection_that_the_system_refuses_leaves_the_descriptors_as_they_were(more: int) -> None:
    script = f"""
import os, resource
from discreet.framing.stdio_guard import redirect
before = [os.fstat(fd) for fd in range(3)]
free = os.dup(0)
os.close(free)
resource.setrlimit(resource.RLIMIT_NOFILE, (free + {more}, free + {more}))
try:
    redirect()
except OSError:
    assert all(os.path.samestat(os.fstat(fd), was) for fd, was in enumerate(before))
    assert os.dup(0) == free
    print("as it was")
"""
    child = subprocess.run(
        [sys.executable, "-P", "-c", script],
        capture_output=True,
        timeout=DEADLINE_SECONDS,
        check=True,
        stdin=subprocess.DEVNULL,
    )
    assert child.stdout == b"as it was\n"


def test_restore_puts_everything_back_and_redirect_may_follow() -> None:
    before = """
import os, sys
def standing():
    numbers = [(found.st_dev, found.st_ino) for found in map(os.fstat, (0, 1, 2))]
    return numbers, [sys.stdin, sys.stdout, sys.stderr, sys.__stdin__, sys.__stdout__, sys.__stderr__]
def count():
    return len(os.listdir("/dev/fd"))
first, opened = standing(), count()
"""
    _, facts = run(
        """
changed = standing()[0] != first[0]
print("held back", end="")
assert reader.stop(60)
restore()
restore()
facts = [standing() == first, changed, count() == opened]
streams = redirect()
reader = StrayOutputReader(streams.stray_out, streams.stray_err)
reader.start()
report(facts)
""",
        before=before,
    )
    assert facts == [True, True, True]


def test_a_terminal_and_the_null_device_get_a_hint_of_one_line_and_nothing_else_does() -> None:
    controlling, controlled = pty.openpty()
    reading, writing = os.pipe()
    null = os.open(os.devnull, os.O_RDONLY)
    for fd in (controlled, null):
        hint = stdin_hint(fd)
        assert hint is not None
        assert hint.splitlines() == [hint]
    assert stdin_hint(reading) is None
    for fd in (controlling, controlled, reading, writing, null):
        os.close(fd)


def test_the_modules_of_the_first_reply_load_nothing_heavy() -> None:
    script = """
import sys
import msgspec
before = set(sys.modules)
import discreet.framing.stdio_guard, discreet.framing.transports.stdio, discreet.framing.transports.stdio, discreet.framing.stdio_guard
print(*sorted(set(sys.modules) - before))
"""
    child = subprocess.run(
        [sys.executable, "-P", "-c", script], capture_output=True, timeout=DEADLINE_SECONDS, check=True
    )
    loaded = {name.partition(".")[0] for name in child.stdout.decode().split()}
    heavy = {"anyio", "asyncio", "json", "logging", "pathlib", "socket", "structlog", "subprocess", "threading"}
    assert "discreet" in loaded
    assert not loaded & heavy


# -- the end ----------------------------------------------------------------------------------------------------------

LOUD = """
import threading, time

def shout(out):
    while True:
        print("x" * 200, file=out)

for out in (sys.stdout, sys.stderr, None):
    threading.Thread(target=shout, args=(out,), daemon=True).start()
"""


def test_a_thread_that_prints_without_end_does_not_abort_the_interpreter_at_its_end() -> None:
    (texts, *_) = run(
        f"""
from discreet.framing.stdio_guard import discard_output
report()
assert reader.stop(60)
{LOUD}
while select.select([], [1], [], 0)[1]:
    os.sched_yield()  # until a thread waits in its print, for nobody reads the pipe any more
discard_output()
print("dropped")
sys.stderr.write("dropped too")
""".replace("import threading", "import select, threading")
    )
    assert texts == []
