"""From another daemon to a service: asks it what it offers, and joins that with what calls it."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Final, TypeAlias

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from ..daemon.operations.service import Service
from ..daemon.operations.spec import Timeout
from ..errors.redaction import register
from .archive import ImportArchive, pack
from .arguments import check_arguments, check_expose, check_matches, tell_notes
from .daemon.calls import NOBODY, MountIdentity
from .daemon.contracts import Command, DaemonImport, DaemonOperation, Target, Url
from .daemon.reading import read_daemon
from .model import ImportFailed
from .openapi.naming import Found, Selection, check_distinct, is_selected, names_of
from .openapi.parsing import DocumentError
from .service import ImportOptions, Upstream, Validate, imported_service
from .validation import require_validator

# The upstream of a daemon that is a command or a URL. Asks and starts nothing.


_LIBRARIES: Final = ("h11",)
"""What HTTP needs."""

StrPath: TypeAlias = "str | os.PathLike[str]"


def target_of(
    source: Sequence[StrPath] | str,
    *,
    cwd: StrPath | None = None,
    env: Mapping[str, str] | None = None,
    allow_private: bool = False,
) -> Target:
    """What `source` names: a command as a list of words, or a URL. Raises `ImportFailed`."""
    if isinstance(source, str):
        if not source.lower().startswith(("http://", "https://")):
            raise ImportFailed(
                f'{source}: a daemon is a list of words, such as ["discreet", "serve", "./app.py:files"], or a URL (http:)'
            )
        if cwd is not None or env:
            raise ImportFailed(f"{source.partition('?')[0]}: cwd and env are for a command")
        require_http()
        return Url(source, allow_private)
    given = list(source) if isinstance(source, Sequence) else []
    words = tuple(os.fspath(word) for word in given if isinstance(word, str | os.PathLike))
    if not words or len(words) < len(given) or not words[0]:
        raise ImportFailed("the command of a daemon is a list of words, and not empty")
    return Command(words, None if cwd is None else os.fspath(cwd), dict(env or {}))


def require_http() -> None:
    """Raises `ImportFailed` where the libraries are not installed that HTTP needs."""
    missing = [name for name in _LIBRARIES if find_spec(name) is None]
    if missing:
        raise ImportFailed(f"a daemon behind a URL needs {' and '.join(missing)}: pip install 'discreet[http]'")


def upstream_of(name: str, target: Target, identity: MountIdentity = NOBODY) -> Upstream:
    """What calls the daemon. `name` is that of the import in the log. Raises `ImportFailed` for an address that is refused."""
    from .daemon.calls import PeerUpstream  # late: each loads what it needs

    if isinstance(target, Url):
        require_http()
        from .daemon.gateway import address_of, gateway_peer

        try:
            address_of(target)
        except ValueError as exc:
            raise ImportFailed(f"{target.name}: {exc}") from None
        return PeerUpstream(name, partial(gateway_peer, target), identity, by_http=True)
    from .daemon.calls import restarted

    return PeerUpstream(name, partial(restarted, target, name), identity)


def from_daemon(  # noqa: PLR0913 - what can be said of an import
    source: Sequence[StrPath] | str,
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
    """A service with the operations of another daemon, or of any server on pipes that answers `rpc.discover`.

    `source` is a command as a list of words, or the URL of a gateway of discreet that serves operations. The daemon is asked once
    what it offers, and then started with the first call, and again whenever it has died. Its operation `shop/price` is called
    `namespace/shop/price` here. `cwd` and `env` are for a command; the settings of this daemon are not passed on.

    The other daemon sees the mount as its caller: by `token` as a bearer token, also when it is asked what it offers, and for
    calls by the app's `credential` of that name. Of the callers here it learns nothing. Imported are the operations that a
    pattern of `include` fits and none of `exclude`. `rename` has new names. Those that `expose` has a pattern for can be called
    from outside, all of them for True; the others by operations of the daemon alone. A caller needs all of `scopes`.

    A daemon of discreet checks params and results itself. `validate` checks the results here as well: whether one that does not
    fit is an internal error (`on`, and so it is for other servers), a line in the log, or nothing. `timeout` is in seconds;
    without it the operations keep their own. Private addresses are refused unless `allow_private`.

    Raises `DeclarationError`: a daemon that can't be asked, or a wrong argument, in one line. Blocks while it is asked.
    """
    check_arguments(dict(locals()))
    if token:
        register(token)
    target = target_of(source, cwd=cwd, env=env, allow_private=allow_private)
    found = read_daemon(target, token=token)
    options = ImportOptions(
        expose=expose,
        validate=("off" if found.native else "on") if isinstance(validate, UnsetType) else validate,
        timeout=timeout,
        scopes=scopes,
        credentials=[credential] if credential else (),
        check_input=not found.native,
    )
    selection = Selection(include=include, exclude=exclude)
    return daemon_service(
        found,
        upstream_of(namespace, target, MountIdentity(credential, token)),
        namespace,
        selection,
        rename or {},
        options,
    )


def document_service(
    found: DaemonImport,
    base_url: str,
    *,
    namespace: str,
    credential: str,
    selection: Selection,
    rename: Mapping[str, str],
    allow_private: bool,
    options: ImportOptions,
) -> Service:
    """The service of an OpenAPI document that discreet has written: its operations at the gateway at `base_url`."""
    url = base_url
    if not url.lower().startswith(("http://", "https://")):
        raise ImportFailed("the document names no server; give base_url")
    upstream = upstream_of(namespace, Url(url, allow_private), MountIdentity(credential))
    chosen = replace(options, credentials=[credential] if credential else ())
    return daemon_service(found, upstream, namespace, selection, rename, chosen)


def daemon_service(
    found: DaemonImport,
    upstream: Upstream,
    namespace: str,
    selection: Selection,
    rename: Mapping[str, str],
    options: ImportOptions,
) -> Service:
    """The service of these operations, as far as they are selected. Raises `ImportFailed`."""
    try:
        all_found = [
            Found("POST", f"/operations/{each.method}", each.name, (each.method.partition("/")[0],))
            for each in found.operations
        ]
        names = names_of(all_found, rename)
        check_matches("include", selection.include, names, rename)
        check_matches("exclude", selection.exclude, names, rename)
        chosen = [
            replace(operation, name=name)
            for operation, each, name in zip(found.operations, all_found, names, strict=True)
            if is_selected(each, name, selection)
        ]
        chosen_names = [operation.name for operation in chosen]
        check_distinct(chosen_names)
    except (DocumentError, ValueError) as exc:
        raise ImportFailed(str(exc)) from None
    if not chosen:
        raise ImportFailed(f"none of its {len(names)} operations is imported")
    check_expose(options.expose, chosen_names, rename)
    if options.check_input or options.validate != "off":
        require_validator("mcp")
    tell_notes(namespace, found.notes, len(chosen))
    packed = ImportArchive(pack(replace(found, operations=tuple(chosen))), DaemonImport, DaemonOperation)
    return imported_service(namespace, packed, upstream, options)
