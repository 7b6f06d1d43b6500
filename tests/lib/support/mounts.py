"""Services of mounted daemons: behind pipes in memory, behind a gateway, behind a command."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any, Final

from discreet import Service
from discreet.imports.archive import ImportArchive, pack
from discreet.imports.daemon.calls import MountIdentity, PeerUpstream
from discreet.imports.daemon.contracts import DaemonImport, DaemonOperation, import_of, without_numbers
from discreet.imports.daemon.reading import read_daemon
from discreet.imports.from_daemon import upstream_of
from discreet.imports.service import ImportOptions, Upstream, imported_service
from discreet.imports.targets import Command
from discreet.schemas.documents import snapshot
from discreet.testing import in_memory

from .programs import environment

FAR_APP: Final = Path(__file__).with_name("far_app.py")
LIBRARY: Final = Path(__file__).parents[1]


def assembled(found: DaemonImport, upstream: Upstream, namespace: str = "", **options: Any) -> Service:
    """The service of an import. Names are those of the daemon behind it, where it has no namespace of its own."""
    packed = ImportArchive(pack(found), DaemonImport, DaemonOperation)
    chosen = {"expose": True, "validate": "off", "check_input": False, **options}
    return imported_service(namespace, packed, upstream, ImportOptions(**chosen))


def by_pipe(service: Service, *, credential: str | None = None, **settings: Any) -> Service:
    """The same service, mounted from a daemon in this event loop."""
    open_peer = partial(in_memory, service, timeout=None, **settings)
    upstream = PeerUpstream("far", open_peer, MountIdentity(credential or ""))
    return assembled(
        without_numbers(import_of(snapshot(service.operations).operations.values())),
        upstream,
        credentials=[credential] if credential else [],
    )


def serve_command(app: str = f"{FAR_APP}:far", *options: str, **env: str) -> Command:
    """A daemon that hosts this app."""
    return Command((sys.executable, "-P", "-m", "discreet", "serve", app, *options), None, environment(LIBRARY, **env))


def by_command(command: Command, namespace: str = "") -> Service:
    """The service of a daemon that is started."""
    return assembled(read_daemon(command), upstream_of("far", command), namespace)
