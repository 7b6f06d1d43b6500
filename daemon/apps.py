"""Finds what the command line names, services and an agent: `pkg.module:attribute`. User code is first run here."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, TypeGuard

from msgspec import Struct

from ..errors.redaction import load_environment, scrub, scrub_secrets
from .operations.service import DeclarationError, Service
from .printable import printable
from .settings import Settings

if TYPE_CHECKING:
    from .agents.agent import Agent


_MAX_REASON: Final = 200
"""Characters that are shown of what an app's own code raised."""


class AppError(Exception):
    """An app can't be hosted; the message is one line. `__cause__` is what the app's own import raised, if it did."""


class Hosted(Struct, frozen=True, eq=False):
    """What the apps are: services, and at most one agent."""

    services: list[Service]
    agent: Agent | None = None


def services_of(settings: Settings) -> list[Service]:
    """The services among what these settings host. Raises as `hosted_of` does."""
    return hosted_of(settings).services


def hosted_of(settings: Settings) -> Hosted:
    """What these settings host: their apps, looked for in the working directory first, else the file service.

    Raises `AppError`, one line for all that is wrong.
    """
    load_environment(os.environ)  # before anybody's code can put what is in there into an error, a detail or a schema
    if settings.apps:
        return load(settings.apps)
    from .services.fs.service import file_service  # late: only where nothing else is served

    try:
        return Hosted([file_service(settings.root, allow_write=settings.allow_write)])
    except OSError:
        raise AppError(f"root {settings.root!r} can't be opened") from None


def load(paths: Sequence[str]) -> Hosted:
    """What these apps are. Raises `AppError`, one line for all that is wrong."""
    services: list[Service] = []
    agent: Agent | None = None
    faults: list[str] = []
    cause: BaseException | None = None
    for path in paths:
        try:
            found = _load_one(path)
            if isinstance(found, Service):
                services.append(found)
            elif agent is None:
                agent = found
            else:
                raise AppError(f"{path!r}: an agent, of which a daemon hosts one")
        except AppError as exc:
            faults.append(str(exc))
            cause = cause or exc.__cause__
    if faults:
        raise AppError("; ".join(faults)) from cause
    return Hosted(services, agent)


def load_object(path: str) -> object:
    """Whatever `pkg.module:attribute` names, looked for in the working directory first. Raises `AppError`."""
    directory = os.getcwd()
    if directory not in sys.path:
        sys.path.insert(0, directory)
    module_name, colon, attribute = path.partition(":")
    if not (module_name and colon and attribute):
        raise AppError(f"{path!r} must look like package.module:service")
    found = _import(module_name, path)
    try:
        for name in attribute.split("."):
            found = getattr(found, name, None)
    except Exception as exc:
        raise AppError(f"{path!r}: its attribute failed ({_scrubbed(exc)})") from exc
    if found is None:
        raise AppError(f"{path!r}: there is no {attribute}")
    return found


def _load_one(path: str) -> Service | Agent:
    found = load_object(path)
    if isinstance(found, Service) or _is_agent(found):
        return found
    raise AppError(f"{path!r}: neither a Service nor an Agent but a {type(found).__name__}")


def _is_agent(found: object) -> TypeGuard[Agent]:
    """Whoever made an agent has imported its class: where nobody has, nobody pays for asking."""
    module = sys.modules.get(f"{__package__}.agents.agent")
    return module is not None and isinstance(found, module.Agent)


def _import(name: str, path: str) -> object:
    try:
        return importlib.import_module(name)
    except DeclarationError as exc:
        raise AppError(f"{path!r}: {scrub_secrets(str(exc))[0]}") from exc
    except ModuleNotFoundError as exc:
        missing = exc.name or ""
        if name == missing or name.startswith(missing + "."):
            raise AppError(f"{path!r}: no module named {missing}") from None
        raise AppError(f"{path!r}: its import failed ({type(exc).__name__}: no module named {missing})") from exc
    except BaseException as exc:
        raise AppError(f"{path!r}: its import failed ({_scrubbed(exc)})") from exc


def _scrubbed(exc: BaseException) -> str:
    """What went wrong and in which line, in a few words that may be shown."""
    try:
        text = " ".join(str(exc).split())
    except Exception:  # noqa: BLE001 - an exception's own `__str__`
        text = ""
    return printable(scrub(f"{type(exc).__name__}: {scrub(text, cap=_MAX_REASON)}{_where(exc)}"))


def _where(exc: BaseException) -> str:
    """The line that failed; for a syntax error its own, which names the file in its text already."""
    trace = exc.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or isinstance(exc, SyntaxError):
        return ""
    return f" at {os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}"
