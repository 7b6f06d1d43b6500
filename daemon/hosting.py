"""Makes a host from settings: the apps that they name, the rules for callers, and the store, which it keeps open."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Final, cast, final

from ..errors.nearest import nearest_hint
from ..errors.redaction import load_environment
from ..version import __version__
from . import plugins
from .apps import AppError, Hosted, hosted_of, load_object
from .host import Host
from .hosted_agent import AgentDeclaration
from .logs import AnyLevel, LogSettings, log
from .operations.access import PARENT, Access, IdentityProvider, StaticTokens, parse_token
from .operations.identity import Identity
from .operations.service import Service
from .settings import Settings


def build_host(settings: Settings, hosted: Hosted | None = None, provider: IdentityProvider | None = None) -> Host:
    """Host this, or what these settings name. `provider` tells callers apart, instead of what the settings name.

    Raises `AppError` or `DeclarationError`, one line for all that is wrong.
    """
    if hosted is None:
        hosted = hosted_of(settings)
    else:
        load_environment(os.environ)
    host = Host(
        hosted.services,
        settings,
        version=__version__,
        access=access_of(settings, hosted.agent) if provider is None else Access(PARENT, checked_provider(provider)),
        credentials=credentials_of(settings, hosted.services),
        agent=hosted.agent,
        store=hosted.store,
        bridge=hosted.bridge,
    )
    host.on_listening = hosted.on_listening
    return host


@contextmanager
def opened_store(host: Host) -> Iterator[None]:
    """Keep the agent's tasks during the block. Raises `AppError`, in one line, where the store can't be used."""
    if not host.agent.durable:
        if host.settings.role != "both":
            raise AppError(
                f"--role {host.settings.role} needs a store that other daemons share:"
                " --store sqlite:PATH, postgresql://... or redis://..."
            )
        yield
        return
    host.agent.open_store()
    try:
        yield
    finally:
        host.agent.close_store()


def log_settings(settings: Settings, level: AnyLevel | None = None) -> LogSettings:
    """How logs are written. `level` is one that was set later."""
    return LogSettings(
        level=level or settings.log_level,
        format=settings.log_format,
        file=settings.log_file,
        color=False if settings.no_color else None,
    )


def access_of(settings: Settings, agent: AgentDeclaration | None = None) -> Access:
    """How callers are told apart. Where the card of `agent` declares API keys, tokens are accepted as such.

    Raises `AppError` for a provider or a token that is none.
    """
    parent = PARENT if settings.scopes is None else Identity(PARENT.subject, frozenset(settings.scopes))
    issued = _given_of_issuer(settings)
    given = [name for name, value in (("--identity", settings.identity), ("--token", settings.tokens)) if value]
    if issued:
        given.append(next(iter(issued)))
    if len(given) > 1:
        raise AppError(f"{' and '.join(given)} exclude each other")
    if settings.identity is not None:
        return Access(parent, _provider(settings.identity, settings.app_dir))
    if issued:
        return Access(parent, _provider_of_issuer(settings, issued))
    if settings.tokens is None:
        return Access(parent)
    api_keys = agent is not None and agent.takes_api_keys
    try:
        return Access(parent, StaticTokens([parse_token(text) for text in settings.tokens], api_keys=api_keys))
    except ValueError as exc:
        raise AppError(f"--token: {exc}") from None


def _given_of_issuer(settings: Settings) -> dict[str, object]:
    """The flags for the tokens of an issuer that are given, with their values."""
    values = {
        "--jwt-issuer": settings.jwt_issuer,
        "--jwt-audience": settings.jwt_audience,
        "--jwt-jwks": settings.jwt_jwks,
        "--jwt-algorithm": settings.jwt_algorithms,
        "--auth-introspect": settings.auth_introspect,
        "--auth-client": settings.auth_client,
    }
    return {flag: value for flag, value in values.items() if value is not None}


def _provider_of_issuer(settings: Settings, given: Mapping[str, object]) -> IdentityProvider:
    """Raises `AppError`: something is missing or too much, an algorithm is none of public keys, the key file holds no key, or
    the client's file no client."""
    asks = settings.auth_introspect is not None or settings.auth_client is not None
    others = ("--jwt-jwks", "--jwt-algorithm") if asks else ()
    if surplus := [flag for flag in others if flag in given]:
        raise AppError(f"--auth-introspect and {surplus[0]} exclude each other")
    needed = ("--auth-introspect", "--auth-client") if asks else ("--jwt-jwks",)
    if missing := [flag for flag in ("--jwt-issuer", "--jwt-audience", *needed) if flag not in given]:
        instead = "" if asks else ", or --auth-introspect and --auth-client" if "--jwt-jwks" in missing else ""
        raise AppError(f"{next(iter(given))} needs {' and '.join(missing)}{instead} beside it")
    if not asks and (lacking := [name for name in ("jwt", "cryptography") if find_spec(name) is None]):
        raise AppError(f"--jwt-issuer needs {' and '.join(lacking)}: pip install 'discreet[jwt]'")
    issuer, audience = settings.jwt_issuer, settings.jwt_audience
    try:
        provider: IdentityProvider = (
            plugins.load("identity", "introspection")(
                issuer, audience, settings.auth_introspect, _text_of(settings.auth_client or "")
            )
            if asks
            else plugins.load("identity", "jwt")(issuer, audience, settings.jwt_jwks, settings.jwt_algorithms or None)
        )
    except ValueError as exc:
        raise AppError(f"{'--auth-introspect' if asks else '--jwt'}: {exc}") from None
    return provider


def _text_of(path: str) -> str:
    """Return the text of the client's file. Raises `ValueError`."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(_MAX_CLIENT + 1)
    except (OSError, UnicodeDecodeError):
        raise ValueError("the client's file can't be read as text") from None
    if len(text) > _MAX_CLIENT:
        raise ValueError(f"the client's file has more than {_MAX_CLIENT} characters")
    return text


_MAX_CLIENT: Final = 16 * 1024


def _provider(path: str, app_dir: str | None) -> IdentityProvider:
    try:
        found = load_object(path, app_dir)
    except AppError as exc:
        raise AppError(f"--identity: {exc}") from exc.__cause__
    return checked_provider(found, f"--identity: {path!r}")


def checked_provider(found: object, name: str = "provider") -> IdentityProvider:
    """Return the object if it is an `IdentityProvider`. Raises `AppError` if it is none."""
    if missing := missing_of_provider(found):
        raise AppError(f"{name}, of the type {type(found).__name__}, needs {missing}")
    return cast(IdentityProvider, found)


def missing_of_provider(found: object) -> str:
    """List what an object lacks to be an `IdentityProvider`, as the end of a sentence; empty if it is one."""
    import inspect  # late: only daemons with a provider of their own need it

    schemes, resolve = getattr(found, "schemes", None), getattr(found, "resolve", None)
    fitting = {
        "to be an object, no class": not isinstance(found, type),
        "a method `resolve`": callable(resolve),
        "`resolve` to be no `async def`": not inspect.iscoroutinefunction(resolve),
        "a list `schemes`": isinstance(schemes, list | tuple) and all(isinstance(s, str) for s in schemes),
        "a text `realm`": isinstance(getattr(found, "realm", None), str),
    }
    return ", ".join(what for what, fits in fitting.items() if not fits)


def credentials_of(settings: Settings, services: Iterable[Service]) -> Mapping[str, str]:
    """Return the credentials that services declare, read from their files, also when these change. The scrubber knows them.

    Raises `AppError` for a file that can't be read, for a declared credential that has none, and for a file of an undeclared
    one.
    """
    given = {name: path for name, _, path in (text.partition("=") for text in settings.credentials or ())}
    wanted = sorted(frozenset[str]().union(*(service.credentials for service in services)))
    for name in given:
        if name not in wanted:
            known = f"{nearest_hint(name, wanted)}; declared are {', '.join(wanted) or 'none'}"
            raise AppError(f"{_CREDENTIAL}{name}: no service or import that is hosted takes it{known}")
    if missing := [name for name in wanted if name not in given]:
        raise AppError(f"{_CREDENTIAL}{', '.join(missing)}: no file is given; expected {missing[0]}=FILE")
    return FileCredentials({name: given[name] for name in wanted})


_CREDENTIAL: Final = "--credential, "
"""Without the comma the scrubber would take the name behind it for a secret."""


@final
class FileCredentials(Mapping[str, str]):
    """Values by name, each that of its file as it is now. A file that is gone, or that can't be read, keeps its last value.

    Raises `AppError` for a file that can't be read at first.
    """

    def __init__(self, paths: Mapping[str, str]) -> None:
        self._paths: Final = paths
        self._stamps = {name: _stamp(path) for name, path in paths.items()}
        self._values = {name: _read(name, path) for name, path in paths.items()}

    def __getitem__(self, name: str) -> str:
        path = self._paths[name]
        stamp = _stamp(path)
        if stamp is not None and stamp != self._stamps[name]:
            try:
                value = _read(name, path)
            except AppError:
                log.warning("credential.unreadable", credential=name)
            else:
                self._values[name] = value or self._values[name]  # it is empty while it is being written
            self._stamps[name] = stamp
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)


def _stamp(path: str) -> tuple[int, int, int] | None:
    """Return what changes with the content of a file; None for anything but a regular file: a pipe is read once."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return (found.st_mtime_ns, found.st_size, found.st_ino) if stat.S_ISREG(found.st_mode) else None


def _read(name: str, path: str) -> str:
    from ..errors.redaction import register  # late: only daemons with credentials pay for it

    try:
        with open(path, encoding="utf-8") as file:
            value = file.read().strip()
    except (OSError, ValueError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else "no UTF-8 text"
        raise AppError(f"{_CREDENTIAL}{name}: its file can't be read: {reason}") from None
    register(value)
    if value.startswith("["):  # it may be an OAuth client
        try:
            plugins.load("credential", "oauth")(value)
        except ValueError as exc:
            raise AppError(f"{_CREDENTIAL}{name}: {exc}") from None
    return value
