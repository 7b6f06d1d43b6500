"""Makes a service of another daemon: asks it for its operations and joins them with the code that calls it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Final

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from ..daemon.operations.service import Service
from ..daemon.operations.spec import Timeout
from ..errors.redaction import register
from .archive import ImportArchive, pack
from .arguments import Found, Selection, check_arguments, check_expose, choose, tell_notes
from .daemon.calls import NOBODY, MountIdentity, PeerUpstream, restarted
from .daemon.contracts import DaemonImport, DaemonOperation
from .daemon.reading import read_daemon
from .service import ImportOptions, Upstream, Validate, imported_service
from .targets import Command, Source, StrPath, Target, require, target_of

KIND: Final = "a daemon"


def upstream_of(name: str, target: Target, identity: MountIdentity = NOBODY) -> Upstream:
    """Return the upstream that calls the daemon. `name` is that of the import in the log."""
    if isinstance(target, Command):
        return PeerUpstream(name, partial(restarted, target, name), identity)
    from .daemon.gateway import gateway_peer  # late: HTTP takes time to load

    return PeerUpstream(name, partial(gateway_peer, target), identity, by_http=True)


def from_daemon(  # noqa: PLR0913 - what can be said of an import
    source: Source,
    *,
    namespace: str,
    credential: str = "",
    token: str = "",
    include: Collection[str] = (),
    exclude: Collection[str] = (),
    rename: Mapping[str, str] | None = None,
    expose: bool | Sequence[str] = False,
    scopes: Sequence[str] = (),
    validate: Validate | UnsetType = UNSET,
    timeout: Timeout = UNSET,
    cwd: StrPath | None = None,
    env: Mapping[str, str] | None = None,
    allow_private: bool = False,
) -> Service:
    """Return a service with the operations of another daemon, or of any server on pipes that answers `rpc.discover`.

    `source` is a command (a list of words, or a line of them), or the URL of a gateway of discreet that serves operations. The
    daemon is asked once for its operations. It is started with the first call, and again when it has died. Its operation
    `shop/price` is called `namespace/shop/price` here. `cwd` and `env` are for a command, which does not get the settings of
    this daemon.

    The other daemon sees this one as its only caller, and learns nothing of the callers here. Calls carry a bearer token: the
    credential of the app that `credential` names, or else `token`. `token` is also sent to ask for the operations.

    `include` and `exclude` are patterns of names; an operation is imported if it matches `include`, if given, and not `exclude`.
    `rename` maps old names to new ones. `expose` has patterns of the operations that callers may call, or True for all; the
    others can only be called by operations of this daemon. A caller needs all of `scopes`.

    A daemon of discreet checks params and results itself. `validate` checks results here as well: with `on`, the default for
    other servers, a result that does not fit is an internal error; with `log`, a line in the log. `timeout` is in seconds;
    without it the operations keep their own. Private addresses are refused unless `allow_private`.

    Blocks while the daemon is asked. Raises `DeclarationError`, in one line, if that fails, and for a wrong argument.
    """
    check_arguments(dict(locals()))
    if token:
        register(token)
    target = target_of(KIND, source, cwd=cwd, env=env, allow_private=allow_private)
    found = read_daemon(target, token=token)
    options = ImportOptions(
        expose=expose,
        validate=("off" if found.native else "on") if isinstance(validate, UnsetType) else validate,
        timeout=timeout,
        scopes=scopes,
    )
    selection = Selection(include=include, exclude=exclude)
    identity = MountIdentity(credential, token)
    return daemon_service(found, target, identity, options, namespace=namespace, selection=selection, rename=rename)


def daemon_service(
    found: DaemonImport,
    target: Target,
    identity: MountIdentity,
    options: ImportOptions,
    *,
    namespace: str,
    selection: Selection,
    rename: Mapping[str, str] | None,
) -> Service:
    """The service of the operations that were found, as far as they are selected. Raises `ImportFailed`."""
    tagged = [
        Found("POST", f"/operations/{each.method}", each.name, (each.method.partition("/")[0],))
        for each in found.operations
    ]
    chosen = [replace(each, name=name) for each, name in choose(found.operations, tagged, selection, rename or {})]
    check_expose(options.expose, [operation.name for operation in chosen], rename)
    credentials = [identity.credential] if identity.credential else ()
    options = replace(options, credentials=credentials, check_input=not found.native)
    if options.check_input or options.validate != "off":
        require("an imported operation", "mcp", "jsonschema_rs")
    tell_notes(namespace, found.notes, len(chosen))
    packed = ImportArchive(pack(replace(found, operations=tuple(chosen))), DaemonImport, DaemonOperation)
    return imported_service(namespace, packed, upstream_of(namespace, target, identity), options)
