"""`discreet inspect`: opens a page in the browser that tries out an MCP server: an app, which is started as a host starts it, or
another server. What is served is a bridge with the page; every start has a token of its own."""

from __future__ import annotations

import argparse
import hashlib
import os
import secrets
import subprocess
import sys
from contextlib import suppress
from functools import partial
from threading import Thread
from typing import Any, Final

from msgspec.structs import replace

from ...bridge import ServerLog
from ...daemon.apps import Hosted
from ...daemon.process.children import MARK
from ...daemon.process.reexec import CHECK, VARIABLE
from ...daemon.server import serve
from ...daemon.settings import SettingsFile, UsageError
from ...daemon.settings.option import RawValue
from ...daemon.settings.resolution import from_environment
from ...daemon.settings.table import HTTP, OPTION_OF, OPTIONS, Settings
from ...errors.redaction import register
from ...flags import file_from_flags, from_flags, to_argv
from ...framing.stdio_guard import STDERR
from ...garbage import begin_relaying
from ...imports.targets import SCHEMES, Command, child_environment
from ..commands import SERVE
from ..output import MAX_LINE_CHARACTERS
from .bridge import bridge_to, target_of_words
from .serve import resolved

ADDRESS: Final = "127.0.0.1:0"
"""Where the page is served without `--http`: on a free port."""

CHECK_SECONDS: Final = 30.0
"""How long the app may take to be imported."""

_SERVED: Final = (HTTP, "logs")
"""The groups of settings that are those of the page. All others are for the app."""

_OWN: Final = frozenset({"dialect", "framing", "no_stdio", "reload", "tcp", "tokens", "identity", "log_level"})
"""Settings that neither side takes as they are."""

_OPEN: Final = "import sys, webbrowser; webbrowser.open(sys.stdin.read())"


def run(args: argparse.Namespace) -> int:
    """Serve until the end. Returns the exit status; raises `UsageError` before anything is served."""
    urls = [word for word in args.apps if word.lower().startswith(SCHEMES)]
    args.apps = [word for word in args.apps if word not in urls]
    if len(urls) + bool(args.apps) + bool(args.command) > 1:
        raise UsageError("either apps, or one URL, or a command behind `--`")
    given = resolved(args).settings
    words = urls[0] if urls else args.command
    target = target_of_words("discreet inspect", words) if words else command_of(args)
    token = secrets.token_urlsafe(24)
    register(token)
    bridge = bridge_to(args, target, share=True, server_log=ServerLog())
    tell = partial(_tell, token, _stderr(), browser=not args.no_browser and _has_browser())
    begin_relaying()
    return serve(_settings(given, token), hosted=Hosted([], bridge=bridge, on_listening=tell))


def command_of(args: argparse.Namespace) -> Command:
    """The command line that serves the app as a host would start it, with `--reload`. Raises `UsageError` for one that can't be
    served."""
    file = file_from_flags(args)
    given = {**({} if args.isolated else from_environment(os.environ)), **from_flags(args)}
    level = given.get("log_level", RawValue("info", "--log-level"))
    values = {name: value for name, value in given.items() if OPTION_OF[name].group not in _SERVED and name not in _OWN}
    values |= {"dialect": RawValue("mcp", "--dialect"), "log_level": level}
    if sys.platform != "win32":
        values["reload"] = RawValue(True, "--reload", typed=True)
    command = Command((*SERVE, *to_argv(values, SettingsFile(file.named, isolated=file.isolated))))
    _check(command)
    return command


def _check(command: Command) -> None:
    """Raise `UsageError` with what the app's own process says where it could not serve."""
    environment = {**child_environment(command), VARIABLE: CHECK}
    try:
        done = subprocess.run(
            command.words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            env=environment,
            timeout=CHECK_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise UsageError(f"the app was not imported within {CHECK_SECONDS:g} s") from None
    if done.returncode:
        said = (done.stdout or done.stderr).decode(errors="backslashreplace").strip().splitlines()
        line = said[-1] if said else f"the app can't be served: status {done.returncode}"
        raise UsageError(line.removeprefix("discreet: ")[:MAX_LINE_CHARACTERS])


def _settings(given: Settings, token: str) -> Settings:
    """The settings of the page's own server."""
    served: dict[str, Any] = {  # of each setting's own type
        option.field: getattr(given, option.field) for option in OPTIONS if option.group in _SERVED
    }
    digest = hashlib.sha256(token.encode()).hexdigest()
    return replace(
        Settings(root=given.root, **served),
        http=given.http or ADDRESS,
        http_mcp=True,
        http_page=True,
        no_stdio=True,
        dialect="mcp",
        tokens=(f"inspect:{digest}",),
    )


def _has_browser() -> bool:
    """Whether a person sits here, who sees a browser that is opened."""
    seen = sys.platform != "linux" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    return seen and sys.stderr is not None and sys.stderr.isatty()


def _stderr() -> int:
    """Return a descriptor of the real stderr, which a daemon replaces; -1 where there is none."""
    try:
        return os.dup(STDERR)
    except OSError:
        return -1


def _tell(token: str, stderr: int, url: str, *, browser: bool) -> None:
    """Print the address with the token, which the page takes out of its own address, and open it in the browser."""
    address = f"{url}#token={token}"
    with suppress(OSError):  # nobody reads it
        os.write(stderr, f"discreet: inspect at {address}\n".encode())
    if browser:
        Thread(target=_open, args=(address,), daemon=True).start()


def _open(address: str) -> None:
    """Open it by a process that ends at once: the browser is no child of the daemon, which would end it with itself."""
    environment = {name: value for name, value in os.environ.items() if name != MARK}
    with suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run(
            [sys.executable, "-I", "-c", _OPEN],
            input=address.encode(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
            env=environment,
            start_new_session=True,
            timeout=CHECK_SECONDS,
        )
