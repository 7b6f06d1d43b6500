"""Runs a command line of `discreet` in the process of the tests, which takes a tenth of what a process takes to start."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, chdir, contextmanager
from pathlib import Path
from subprocess import CompletedProcess
from typing import IO, Final

from discreet.cli.main import main

from .programs import environment

STREAMS: Final = ("stdin", "stdout", "stderr")


def in_process(*words: str, folder: Path | None = None, stdin: str = "", **more: str) -> CompletedProcess[str]:
    """As `programs.finished`. What the verb starts is a process as ever; apps that it imports are forgotten afterwards."""
    with ExitStack() as stack:
        files = [stack.enter_context(tempfile.TemporaryFile()) for _ in STREAMS]
        files[0].write(stdin.encode())
        files[0].seek(0)
        stack.enter_context(chdir(folder or os.curdir))
        stack.enter_context(_environment(environment(**more)))
        with _descriptors(files), _without_apps(os.getcwd()):
            status = main(words)
        for file in files:
            file.seek(0)
        _, stdout, stderr = (file.read().decode() for file in files)
    return CompletedProcess(words, status, stdout, stderr)


@contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def _without_apps(folder: str) -> Iterator[None]:
    """Modules of this folder are imported anew by whoever comes next, and leave no bytecode of an older text."""
    before, finders, sys.dont_write_bytecode = set(sys.modules), list(sys.meta_path), True
    try:
        yield
    finally:
        sys.meta_path[:], sys.dont_write_bytecode = finders, False
        for name in set(sys.modules) - before:
            if os.path.dirname(getattr(sys.modules[name], "__file__", None) or "") == folder:
                del sys.modules[name]


@contextmanager
def _descriptors(files: list[IO[bytes]]) -> Iterator[None]:
    """These files are 0, 1 and 2, for Python and for what is started."""
    before = [getattr(sys, name) for name in STREAMS]
    saved = [os.dup(fd) for fd in range(3)]
    for fd, (name, file) in enumerate(zip(STREAMS, files, strict=True)):
        os.dup2(file.fileno(), fd)
        setattr(sys, name, os.fdopen(fd, "w" if fd else "r", encoding="utf-8", closefd=False))
    try:
        yield
    finally:
        for fd, name in enumerate(STREAMS):
            getattr(sys, name).close()
            setattr(sys, name, before[fd])
            os.dup2(saved[fd], fd)
            os.close(saved[fd])
