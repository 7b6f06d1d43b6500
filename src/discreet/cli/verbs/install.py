"""`discreet install`: writes an MCP server into the settings of hosts, or takes it out of them."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ...daemon.apps import hosted_of
from ...daemon.lifecycle import EXIT_FAILED, EXIT_OK
from ...daemon.operations.registry import Registry, server_of
from ...daemon.settings import OPTIONS, Settings, SettingsFile, UsageError, resolve_settings
from ...daemon.settings.option import URL_SCHEMES, RawValue
from ...errors.printable import printable
from ...errors.redaction import load_environment, scrub_secrets
from ...flags import FlagParser, add_setting_flags, file_from_flags, from_flags, to_argv
from ...mcp_hosts.settings_file import (
    BACKUP,
    SettingsFault,
    change_file,
    decoded,
    edited,
    entries_at,
    read_file,
    read_settings,
)
from ...mcp_hosts.table import HOSTS, Host, Machine, Server, read_server, starts_discreet, this_machine
from ...version import __version__
from ..app_import import importing_apps
from ..commands import SERVE
from ..output import write_stderr, write_stdout

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""The names that every host takes."""


def run(args: argparse.Namespace) -> int:
    """Write the server into the settings of each host, or take it out. Returns 1 if that failed for one of them.

    Raises `UsageError` before anything is written.
    """
    machine = this_machine()
    load_environment(os.environ)
    if not args.host:
        here = ", ".join(name for name, host in HOSTS.items() if os.path.isdir(host.folder_on(machine)))
        raise UsageError(f"--host says into whose settings; on this machine: {here or 'none that is known'}")
    hosts = [HOSTS[name] for name in dict.fromkeys(args.host)]
    server = _server(args)
    for host in hosts:
        _check(host, server, args)
    failed = False
    for host in hosts:
        try:
            for line in _applied(host, server, args, machine):
                write_stdout(printable(line))
        except SettingsFault as exc:
            write_stderr(f"{host.title}: {exc}")
            failed = True
    return EXIT_FAILED if failed else EXIT_OK


def _server(args: argparse.Namespace) -> Server:
    """The server that the command line names. Imports its apps, unless it is only to be removed and has a name."""
    name, url = args.name, args.http or ""
    words: tuple[str, ...] = ()
    if url and not (url.startswith(URL_SCHEMES) and url.isprintable() and " " not in url):
        raise UsageError("--http: expected an address that begins with http:// or https://")
    if url and (args.command or args.env):
        raise UsageError("--http is the address of a server that runs: it takes no settings and no --env")
    if wrong := [each for each in args.env if not each.isascii() or not each.isidentifier()]:
        raise UsageError(
            f"--env {wrong[0].partition('=')[0]}: expected the name of a variable; its value is that of the environment"
        )
    if not (url or args.apps or args.command or (args.remove and name)):
        raise UsageError("name an app, as for discreet serve; with --http URL or --remove, --name is enough")
    if args.apps or args.command:
        words, of_apps = _command_line(args, check=name is None or not args.remove)
        name = name or of_apps
    if not name or not _NAME.fullmatch(name):
        raise UsageError("--name: expected a name of 1 to 64 letters, digits, _ and -")
    return Server(name, () if url else words, url, {each: os.environ.get(each, "") for each in args.env})


def _command_line(args: argparse.Namespace, *, check: bool) -> tuple[tuple[str, ...], str]:
    """The command line of `discreet serve`, with absolute paths, and a name. With `check` the apps are imported."""
    parser = FlagParser("discreet serve", "")
    add_setting_flags(parser)
    read = parser.read([*args.apps, *args.command])
    values, file = from_flags(read), file_from_flags(read)
    if file.named is not None:
        file = SettingsFile(os.path.abspath(file.named), isolated=file.isolated)
    # The host starts it elsewhere and with other variables: only what is said here counts.
    apart = SettingsFile(file.named, isolated=file.named is None)
    settings = resolve_settings({"dialect": RawValue("mcp", "--dialect"), **values}, {}, os.getcwd(), apart).settings
    if settings.listens or settings.tcp:
        raise UsageError("a host starts a server on stdin and stdout; start this one yourself, and give --http its URL")
    rest = to_argv(dict(_with_absolute_paths(values, settings)), file)
    if not args.force and any("://" in word and scrub_secrets(word)[1] for word in rest):
        raise UsageError(
            "the address of a setting holds a secret, which the file would show; --env passes a variable, --force writes it"
        )
    try:  # as the host will start it: lists of paths take none with blanks
        resolve_settings(from_flags(parser.read([*settings.apps, *rest])), {}, os.sep, apart)
    except UsageError as exc:
        raise UsageError(f"{exc}; a path with blanks goes into a file for --config") from exc
    name = ""
    if check:
        with importing_apps():
            services = hosted_of(settings).services
            Registry(services)  # checks that the services can be hosted together
            name = re.sub(r"[^A-Za-z0-9_-]+", "-", server_of(services, __version__).name).strip("-")[:64]
    return (*SERVE, *settings.apps, "--dialect", str(settings.dialect), *rest), name


def _with_absolute_paths(values: Mapping[str, RawValue], settings: Settings) -> Iterator[tuple[str, RawValue]]:
    """Yield the values of flags, but for apps and dialect, with the paths that the settings made of them."""
    for option in OPTIONS:
        if option.field not in values or option.field in ("apps", "dialect"):
            continue
        found: Any = getattr(settings, option.field)
        match option.kind:
            case "directory" | "file" | "readable" | "keys" | "object" | "store" | "address":
                yield option.field, RawValue(found or "-", option.flag)
            case "files":
                yield option.field, RawValue(" ".join(found), option.flag)
            case "imports":
                yield option.field, RawValue(" ".join(f"{each.name}={each.openapi}" for each in found), option.flag)
            case _:
                yield option.field, values[option.field]


def _check(host: Host, server: Server, args: argparse.Namespace) -> None:
    """Raise `UsageError` for what the host's settings can't hold."""
    if args.scope not in host.files:
        raise UsageError(f"--scope: {host.title} has no scope {args.scope}; it has {', '.join(host.files)}")
    if args.remove:
        return
    if server.url and host.http is None:
        raise UsageError(f"--http: the settings of {host.title} take no addresses; add it as a connector there")
    if server.url and scrub_secrets(server.url)[1] and not args.force:
        raise UsageError("--http: the address holds a secret, which the file would show; --force writes it")
    mark = host.env.partition("NAME")[0]
    if mark and any(mark in word for word in server.words):
        raise UsageError(f"{host.title} would replace {mark} in the command line by a variable")
    unset = [name for name, value in server.env.items() if not host.env and not value]
    if unset:
        raise UsageError(f"--env {unset[0]}: {host.title} takes only values, and the variable is not set here")


def _applied(host: Host, server: Server, args: argparse.Namespace, machine: Machine) -> Iterator[str]:
    """Do it for one host. Yields what was done, in lines. Raises `SettingsFault`, which names the file."""
    file = host.path(args.scope, machine)
    keys = _keys(host, file, host.keys_of(args.scope, machine))
    folder = host.folder_on(machine)
    if args.print and args.remove:
        yield f"{host.title}: {server.name} would be removed from {file}"
    elif args.print:
        write_stderr(f"{host.title}: {file}")
        shown = Server(server.name, server.words, server.url, {each: f"(the value of {each})" for each in server.env})
        yield from edited("", host.format, keys, server.name, host.entry(shown)).splitlines()
    elif args.scope == "user" and not (args.force or args.remove or os.path.isdir(folder) or os.path.exists(file)):
        raise SettingsFault(f"is not here: there is no folder {folder}; --force makes it, --print shows what to write")
    elif args.remove and not os.path.exists(file):
        raise SettingsFault(f"{file}: there is no such file")
    else:
        yield from _changed(host, server, args, file, keys)


def _keys(host: Host, file: str, all_keys: list[tuple[str, ...]]) -> tuple[str, ...]:
    """The keys whose object is there already, else the last ones."""
    for keys in all_keys[:-1]:
        try:
            if entries_at(read_settings(decoded(read_file(file)), host.format), keys) is not None:
                return keys
        except SettingsFault:
            pass  # which is said when it is changed
    return all_keys[-1]


def _changed(host: Host, server: Server, args: argparse.Namespace, file: str, keys: tuple[str, ...]) -> Iterator[str]:
    done = ""

    def edit(text: str) -> str | None:
        nonlocal done
        old = (entries_at(read_settings(text, host.format), keys) or {}).get(server.name)
        if old is None and args.remove:
            raise SettingsFault(f"there is no server {server.name}")
        if old is not None and not (args.force or _is_ours(server, old)):
            raise SettingsFault(
                f"the server {server.name} is not discreet's; --name takes another name, --force takes this"
            )
        if args.remove:
            done = f"removed {server.name} from"
            return _undone(file, text, host, keys, server.name, old)
        members = old if isinstance(old, dict) else {}
        new = {**host.entry(server), **{key: value for key, value in members.items() if key not in host.members}}
        done = f"replaced {server.name} in" if old is not None else f"wrote {server.name} to"
        done = f"{server.name} is already in" if new == old else done
        return text if new == old else edited(text, host.format, keys, server.name, new)

    try:
        has_values = bool(server.env) and not host.env
        backup = change_file(file, edit, private=has_values)
    except SettingsFault as exc:
        raise SettingsFault(f"{file}: {exc}") from exc
    yield f"{host.title}: {done} {file}" + (f" (backup: {backup})" if backup else "")
    if args.scope == "project" and server.words and not args.remove:
        write_stderr(f"{host.title}: {file} has absolute paths of this machine; others need their own")
    if has_values and not args.remove:
        write_stderr(f"{host.title}: {file} has the values of {', '.join(server.env)} as text")


def _is_ours(server: Server, entry: object) -> bool:
    """Whether an entry is of this server, or of another that discreet has written."""
    found = read_server(server.name, entry)
    return found is not None and (starts_discreet(found.words) or (bool(found.url) and found.url == server.url))


def _undone(file: str, text: str, host: Host, keys: tuple[str, ...], name: str, entry: Any) -> str | None:
    """The text without the entry. Where the backup lacks it, and with it is the text, that is the backup, byte for byte.

    None where there is no backup, and nothing but the entry in the text: the file was made for it.
    """
    try:
        backup = read_file(os.path.realpath(file) + BACKUP)
        if backup is None and edited("", host.format, keys, name, entry) == text:
            return None
        before = decoded(backup)
        lacks = name not in (entries_at(read_settings(before, host.format), keys) or {})
        if before and lacks and edited(before, host.format, keys, name, entry) == text:
            return before
    except SettingsFault:
        pass  # then it is taken out of the text
    return edited(text, host.format, keys, name, None)
