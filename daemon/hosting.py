"""Finds the services that the command line names: `pkg.module:attribute`. User code is first run here."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from .operations.service import DeclarationError, Service


class AppError(Exception):
    """An app can't be hosted; the message is one line. `__cause__` is what the app's own import raised, if it did."""


def load(paths: Sequence[str], directory: str) -> list[Service]:
    """The services of these apps, looked for in `directory` first. Raises `AppError`, one line for all that is wrong."""
    if directory not in sys.path:
        sys.path.insert(0, directory)
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


def _load_one(path: str) -> Service:
    module_name, colon, attribute = path.partition(":")
    if not (module_name and colon and attribute):
        raise AppError(f"app {path!r} must look like package.module:service")
    module = _import(module_name, path)
    found: object = module
    for name in attribute.split("."):
        found = getattr(found, name, None)
    if not isinstance(found, Service):
        raise AppError(f"app {path!r}: {'there is no ' + attribute if found is None else 'not a Service'}")
    return found


def _import(name: str, path: str) -> object:
    try:
        return importlib.import_module(name)
    except DeclarationError as exc:
        raise AppError(f"app {path!r}: {exc}") from exc
    except ModuleNotFoundError as exc:
        missing = exc.name or ""
        if name == missing or name.startswith(missing + "."):
            raise AppError(f"app {path!r}: no module named {missing}") from None
        raise AppError(f"app {path!r}: its import failed ({type(exc).__name__}: no module named {missing})") from exc
    except BaseException as exc:  # noqa: BLE001 - user code at import: whatever it raises is its own fault
        raise AppError(f"app {path!r}: its import failed ({type(exc).__name__})") from exc
