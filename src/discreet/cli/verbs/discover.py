"""`discreet discover`: lists the MCP servers that the hosts of this machine have. Starts none, and shows no secrets."""

import argparse
import os
import shlex
from collections.abc import Iterator
from itertools import groupby

import msgspec

from ...daemon.lifecycle import EXIT_FAILED, EXIT_OK
from ...errors.printable import printable
from ...errors.redaction import find_secrets, load_environment, register, scrub_secrets
from ...errors.redaction.values import scrub_arguments
from ...mcp_hosts.settings_file import SettingsFault, decoded, entries_at, read_file, read_settings
from ...mcp_hosts.table import HOSTS, Machine, Scope, Server, read_server, starts_discreet, this_machine
from ..output import print_json, require_stdout, write_stdout


class Found(msgspec.Struct, frozen=True):
    """A server of a settings file. `command` is empty for one with a `url`. `env` names its variables. `discreet` means that it
    starts `discreet serve`.
    """

    host: str
    scope: Scope
    file: str
    name: str
    command: list[str]
    url: str
    env: list[str]
    discreet: bool


class Fault(msgspec.Struct, frozen=True):
    """A settings file that can't be read, and why."""

    host: str
    file: str
    reason: str


class Report(msgspec.Struct, frozen=True):
    """The document that `--json` prints."""

    servers: list[Found]
    faults: list[Fault]


def run(args: argparse.Namespace) -> int:
    """Print the servers. Returns 1 if a settings file can't be read."""
    require_stdout()
    load_environment(os.environ)
    report = discover(this_machine())
    if args.json:
        print_json(msgspec.Raw(msgspec.json.encode(report)), one_line=False)
    else:
        write_stdout("\n".join(map(printable, _lines(report))) or "no host has a server here")
    return EXIT_FAILED if report.faults else EXIT_OK


def discover(machine: Machine) -> Report:
    """Find the servers of all hosts, by their settings files."""
    report = Report([], [])
    for key, host in HOSTS.items():
        for file in dict.fromkeys(file for scope in host.files for file in host.paths(scope, machine)):
            try:
                settings = read_settings(decoded(read_file(file)), host.format)
                for scope in host.files:
                    all_keys = host.keys_of(scope, machine) if file in host.paths(scope, machine) else []
                    for entries in [entries_at(settings, keys) or {} for keys in all_keys]:
                        servers = [found for name, entry in entries.items() if (found := read_server(name, entry))]
                        report.servers.extend(_scrubbed(key, scope, file, server) for server in servers)
            except SettingsFault as exc:
                report.faults.append(Fault(key, file, str(exc)))
    return report


def _scrubbed(host: str, scope: Scope, file: str, server: Server) -> Found:
    for name, value in server.env.items():
        for secret, _ in find_secrets(f"{name}={value}")[1]:
            register(secret)  # it may stand among the arguments, too
    words = [scrub_secrets(str(word))[0] for word in scrub_arguments([*server.words], find_secrets)]
    name, url = scrub_secrets(server.name)[0], scrub_secrets(server.url)[0]
    return Found(host, scope, file, name, words, url, [*server.env], starts_discreet(server.words))


def _lines(report: Report) -> Iterator[str]:
    width = max((len(server.name) for server in report.servers), default=0)
    for (host, scope, file), servers in groupby(report.servers, lambda each: (each.host, each.scope, each.file)):
        yield f"{HOSTS[host].title}, {scope}: {file}"
        yield from (f"  {server.name:<{width}}  {server.url or shlex.join(server.command)}" for server in servers)
    for fault in report.faults:
        yield f"{HOSTS[fault.host].title}: {fault.file}: {fault.reason}"
