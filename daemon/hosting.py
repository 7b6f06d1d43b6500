"""Finds the services that the command line names: `pkg.module:attribute`. User code is first run here."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence

from .operations.service import DeclarationError, Service
from .settings import Settings


class AppError(Exception):
    """An app can't be hosted; the message is one line. `__cause__` is what the app's own import raised, if it did."""


def services_of(settings: Settings) -> list[Service]:
    """What these settings host: their apps, looked for in the working directory first, else the file service.

    Raises `AppError`, one line for all that is wrong.
    """
    if settings.apps:
        return load(settings.apps)
    from .services.files import file_service  # late: only where nothing else is served

    try:
        return [file_service(settings.root, allow_write=settings.allow_write)]
    except OSError:
        raise AppError(f"root {settings.root!r} can't be opened") from None


def load(paths: Sequence[str]) -> list[Service]:
    """The services of these apps. Raises `AppError`, one line for all that is wrong."""
    services: list[Service] = []
    faults: list[str] = []
    cause: BaseException | None = None
    for path in paths:
        try:
            services.append(_load_one(path))
        except AppError as exc:
            faults.append(str(exc))
            cause = cause or exc.__cause__
    if faults:
        raise AppError("; ".join(faults)) from cause
    return services


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


def _load_one(path: str) -> Service:
    found = load_object(path)
    if not isinstance(found, Service):
        raise AppError(f"{path!r}: not a Service but a {type(found).__name__}")
    return found


def _import(name: str, path: str) -> object:
    try:
        return importlib.import_module(name)
    except DeclarationError as exc:
        raise AppError(f"{path!r}: {exc}") from exc
    except ModuleNotFoundError as exc:
        missing = exc.name or ""
        if name == missing or name.startswith(missing + "."):
            raise AppError(f"{path!r}: no module named {missing}") from None
        raise AppError(f"{path!r}: its import failed ({type(exc).__name__}: no module named {missing})") from exc
    except BaseException as exc:
        raise AppError(f"{path!r}: its import failed ({_scrubbed(exc)})") from exc


def _scrubbed(exc: BaseException) -> str:
    """What went wrong and in which line, in a few words that may be shown."""
    from ..errors.redaction import scrub  # late: only a failure pays for it

    try:
        text = " ".join(str(exc).split())[:200]
    except Exception:  # noqa: BLE001 - an exception's own `__str__`
        text = ""
    return scrub(f"{type(exc).__name__}: {text}{_where(exc)}")


def _where(exc: BaseException) -> str:
    """The line that failed; for a syntax error its own, which names the file in its text already."""
    trace = exc.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or isinstance(exc, SyntaxError):
        return ""
    return f" at {os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}"
