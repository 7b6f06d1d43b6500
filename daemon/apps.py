"""Finds what the settings name, services and an agent. User code is first run here.

Nothing is found by accident: a module is installed, or it stands in a folder that the settings name. `app_modules` says how.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from types import CodeType, ModuleType, TracebackType
from typing import Final, assert_never, final

from msgspec import Struct

from ..errors.printable import printable
from ..errors.redaction import load_environment, scrub, scrub_secrets
from . import plugins
from .hosted_agent import AgentDeclaration
from .operations.service import DeclarationError, Service, source_of
from .settings import Settings
from .settings.option import EXPECTED, FileReference, ModuleReference, Reference, read_reference

# Imports the modules of apps, by name or by file. The only place that adds to what is importable.
#
# A folder is never put on `sys.path`. A finder behind all others serves what stood in the folder when it was added. So no
# file there takes the place of an installed module, packages that look for plug-ins don't find any there, and a file that a
# caller writes later is not importable.


PACKAGE_FILE: Final = "__init__.py"


class UnusableFile(Exception):
    """A file can't be an app; the message says why, in a few words."""


@final
class FolderFinder:
    """Finds modules with these names in one folder. Stands at the end of `sys.meta_path`."""

    def __init__(self, folder: str, names: Iterable[str]) -> None:
        self._folder = folder
        self._names = frozenset(names)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module, if it is one of the folder's own; `path` is that of a package, whose modules others find."""
        return PathFinder.find_spec(name, [self._folder]) if path is None and name in self._names else None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FolderFinder) and (self._folder, self._names) == (other._folder, other._names)

    __hash__ = None  # type: ignore[assignment]


def add_folder(folder: str) -> None:
    """Make the modules of a folder importable that nothing else provides. Raises `UnusableFile` for one that can't be read."""
    try:
        _add(FolderFinder(folder, {entry.partition(".")[0] for entry in os.listdir(folder)}))
    except OSError:
        raise UnusableFile("its folder can't be read") from None


def import_file(path: str) -> ModuleType:
    """The module of a file, and what stands beside it becomes importable; of a package's file, only the package.

    `path` is absolute. Raises `UnusableFile`, and whatever the module raises.
    """
    if not os.path.isfile(path):
        from .settings.meant_app import nearest_file  # late: only errors need it

        raise UnusableFile(f"there is no such file{nearest_file(_shown_module(path))}")
    folder, parts = _package_of(path)
    if any("." in part for part in parts):
        raise UnusableFile("a name with a dot can't be imported")
    if len(parts) == 1 and os.path.basename(path) != PACKAGE_FILE:
        add_folder(folder)
        return import_module(parts[0]) if _provides(parts[0], path) else _import_apart(parts[0], path)
    _add(FolderFinder(folder, parts[:1]))
    if not _provides(parts[0], os.path.join(folder, parts[0], PACKAGE_FILE)):
        raise UnusableFile(f"its package has the name of another module, {parts[0]}")
    return import_module(".".join(parts))


def _shown_module(path: str) -> str:
    """The path from the working directory, if it leads down from there."""
    try:
        shorter = os.path.relpath(path)
    except (OSError, ValueError):  # the directory is gone, or on another drive
        return path
    return path if shorter.startswith(os.pardir) else os.path.join(os.curdir, shorter)


def _add(finder: FolderFinder) -> None:
    if finder not in sys.meta_path:
        sys.meta_path.append(finder)


def _package_of(path: str) -> tuple[str, list[str]]:
    """The folder from which the file is imported, and the names on the way to it: those of its packages, and its own."""
    folder, file = os.path.split(path)
    parts = [] if file == PACKAGE_FILE else [file.removesuffix(".py")]
    while os.path.isfile(os.path.join(folder, PACKAGE_FILE)) and os.path.basename(folder):
        folder, package = os.path.split(folder)
        parts.insert(0, package)
    return folder, parts or [file.removesuffix(".py")]


def _provides(name: str, path: str) -> bool:
    """Whether importing the name would load this very file."""
    from importlib.util import find_spec  # late: apps with names do without

    try:
        spec = find_spec(name)
    except ValueError:  # a module without a spec, such as `__main__`
        return False
    return spec is not None and _is(spec.origin, path)


def _import_apart(name: str, path: str) -> ModuleType:
    """Import the file as a module of a free name. An import of its own name gets the module that has the name already."""
    from importlib.util import find_spec, module_from_spec, spec_from_file_location

    number = 2
    while (known := sys.modules.get(f"{name}_{number}")) is not None or find_spec(f"{name}_{number}") is not None:
        if known is not None and _is(known.__file__, path):
            return known
        number += 1
    spec = spec_from_file_location(f"{name}_{number}", path)
    if spec is None or spec.loader is None:
        raise UnusableFile("it is no Python module")
    module = sys.modules[spec.name] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(spec.name, None)
        raise
    return module


def _is(found: str | None, path: str) -> bool:
    try:
        return found is not None and os.path.samefile(found, path)
    except OSError:  # such as a built-in module
        return False


_MOST_NAMES: Final = 8
"""How many names of a module are listed where the one asked for is not there."""
_MAX_REASON: Final = 200
"""Characters that are shown of what an app's own code raised."""


class AppError(Exception):
    """An app can't be hosted; the message is one line. `__cause__` is what the app's own import raised, if it did."""


def _nothing(_: object) -> None: ...


class Hosted(Struct, frozen=True, eq=False):
    """The objects that apps give: services, and at most one agent."""

    services: list[Service]
    agent: AgentDeclaration | None = None
    store: object | None = None
    """A task store that the program has made, in the place of the setting's."""
    bridge: object | None = None
    """The dialect of all clients, a `Plugin` whose sessions are those of another server."""
    on_listening: Callable[[str], object] = _nothing
    """Called on the loop with the URL when HTTP is served."""


def hosted_of(settings: Settings) -> Hosted:
    """Import the apps of these settings, or else the file service. Raises `AppError`, one line for all that is wrong."""
    load_environment(os.environ)  # before anybody's code can put what is in there into an error, a detail or a schema
    if settings.apps or settings.imports:
        hosted = load(settings.apps, settings.app_dir)
        return Hosted([*hosted.services, *_imported(settings)], hosted.agent) if settings.imports else hosted
    try:
        return Hosted([plugins.load("service", "fs")(settings.root, allow_write=settings.allow_write)])
    except OSError:
        raise AppError(f"root {settings.root!r} can't be opened") from None


def _imported(settings: Settings) -> Iterator[Service]:
    service_of = plugins.load("service", "import")
    credentials = {name: path for name, _, path in (text.partition("=") for text in settings.credentials or ())}
    for each in settings.imports:
        try:
            yield service_of(each, credentials, private=settings.import_private)
        except DeclarationError as exc:
            raise AppError(f"import {each.name}: {printable(scrub_secrets(str(exc))[0])}") from None


def load(apps: Sequence[str], app_dir: str | None = None) -> Hosted:
    """Import these apps. Raises `AppError`, one line for all that is wrong."""
    services: list[Service] = []
    agent: AgentDeclaration | None = None
    faults: list[str] = []
    cause: BaseException | None = None
    for app in apps:
        try:
            found = _load_one(app, app_dir)
            if isinstance(found, Service):
                services.append(found)
            elif agent is None:
                agent = found
            else:
                raise AppError(f"{_shown(app)}: an agent too; a daemon hosts at most one agent")
        except AppError as exc:
            faults.append(str(exc))
            cause = cause or exc.__cause__
    if faults:
        raise AppError("; ".join(faults)) from cause
    return Hosted(services, agent)


def hosted_objects(objects: Sequence[object]) -> Hosted:
    """These services and at most one agent. Raises `AppError`, one line for what can't be hosted."""
    services = [found for found in objects if isinstance(found, Service)]
    agents = [found for found in objects if isinstance(found, AgentDeclaration)]
    if others := [found for found in objects if not isinstance(found, Service | AgentDeclaration)]:
        raise AppError(f"neither a Service nor an Agent but of type {type(others[0]).__name__}")
    if not objects or len(agents) > 1:
        raise AppError("a daemon hosts one service or more, and at most one agent")
    return Hosted(services, agents[0] if agents else None)


def load_object(text: str, app_dir: str | None) -> object:
    """Whatever a reference (`settings.reference`, an absolute path) refers to. Raises `AppError`."""
    return _load_object(text, app_dir)[0]


def _load_object(text: str, app_dir: str | None) -> tuple[object, ModuleType]:
    reference = read_reference(text)
    if reference is None:
        raise AppError(f"{text!r} must look like {EXPECTED}")
    shown = _shown(text)
    module = _import(reference, app_dir, shown)
    found: object = module
    try:
        for name in reference.attribute.split("."):
            found = getattr(found, name, None)
    except Exception as exc:
        raise AppError(f"{shown}: its attribute failed ({_scrubbed(exc)})") from exc
    if found is None:
        raise AppError(f"{shown}: there is no {reference.attribute}{_instead(module)}")
    return found, module


def _load_one(text: str, app_dir: str | None) -> Service | AgentDeclaration:
    found, module = _load_object(text, app_dir)
    if isinstance(found, Service | AgentDeclaration):
        return found
    kind = type(found).__name__
    raise AppError(f"{_shown(text)}: neither a Service nor an Agent but of type {kind}{_instead(module)}")


def _instead(module: ModuleType) -> str:
    """List the objects of the module that could be served, as the end of a sentence."""
    names = [name for name, value in list(vars(module).items()) if isinstance(value, Service | AgentDeclaration)]
    return f"; the module has {', '.join(sorted(names)[:_MOST_NAMES])}" if names else "; the module has no Service"


def _import(reference: Reference, app_dir: str | None, shown: str) -> ModuleType:
    try:
        if app_dir is not None:
            add_folder(app_dir)
    except UnusableFile as exc:
        raise AppError(f"app-dir: {exc}") from None
    match reference:
        case ModuleReference(module):
            return _run(lambda: import_module(module), shown, lambda missing: _not_installed(reference, missing))
        case FileReference(path):
            return _run(lambda: import_file(path), shown, lambda _: None)
        case _:
            assert_never(reference)


def _run(load: Callable[[], ModuleType], shown: str, explain: Callable[[str], str | None]) -> ModuleType:
    """Run user code. `explain` says of a missing module why it is the app itself that is missing, if it is."""
    try:
        return load()
    except (DeclarationError, UnusableFile) as exc:
        place = f" ({where})" if (where := _where(exc)) else ""
        raise AppError(f"{shown}: {scrub_secrets(str(exc))[0]}{place}") from exc
    except ModuleNotFoundError as exc:
        missing = exc.name or ""
        if (fault := explain(missing)) is not None:
            raise AppError(f"{shown}: {fault}") from None
        hint = "; --app-dir . would find it here" if _file_here(missing) else ""
        raise AppError(f"{shown}: its import failed (no module named {missing}{hint})") from exc
    except BaseException as exc:
        hint = '; keep serve(…) under `if __name__ == "__main__":`' if isinstance(exc, SystemExit) else ""
        raise AppError(f"{shown}: its import failed ({_scrubbed(exc)}){hint}") from exc


def _not_installed(reference: ModuleReference, missing: str) -> str | None:
    name = reference.module
    if name != missing and not name.startswith(missing + "."):
        return None
    path = _file_here(name) or (_file_here(name.removesuffix(".py")) if name.endswith(".py") else None)
    if path is not None:
        return f"no installed module {name}; to run {path} write {path}:{reference.attribute}"
    if name.endswith(".py"):
        file = name.removesuffix(".py").replace(".", "/") + ".py"
        return f"no installed module {name}; a file is named by its path: ./{file}:{reference.attribute}"
    return f"no installed module {missing}"


def _file_here(module: str) -> str | None:
    """The file in the working directory that a module of this name would have. It is only named in messages."""
    stem = module.replace(".", "/")
    paths = (f"./{stem}.py", f"./{stem}/{PACKAGE_FILE}")
    return next((path for path in paths if stem.strip("/") and os.path.isfile(path)), None)


def _shown(text: str) -> str:
    """A reference as a message shows it: a file in the working directory by its relative path."""
    try:
        here = os.path.join(os.getcwd(), "")
    except OSError:
        here = ""
    return repr(f".{os.sep}{text.removeprefix(here)}" if here and text.startswith(here) else text)


def lifespan_failed(service: Service, exc: BaseException) -> AppError:
    """Why nothing can be served, in one line, where a service's lifespan raised this."""
    source = source_of(service.lifespan)
    return AppError(
        f"service {service.namespace!r}: its lifespan{f' ({source})' if source else ''} failed: {_scrubbed(exc)}"
    )


def _scrubbed(exc: BaseException) -> str:
    """Describe the fault and its line, in a few words that may be shown."""
    from ..errors.redaction.tracebacks import suggestion  # late, as below

    try:
        text = " ".join(f"{exc}{suggestion(exc)}".split())
    except Exception:  # noqa: BLE001 - an exception's own `__str__`
        text = ""
    place = f" at {where}" if (where := _where(exc)) else ""
    return printable(scrub(f"{type(exc).__name__}: {scrub(text, cap=_MAX_REASON)}{place}"))


def _where(exc: BaseException) -> str:
    """The innermost line of the app that failed, not of what it calls; for a syntax error the text names the file already."""
    from ..errors.redaction.tracebacks import is_ours  # late: only a failure needs it

    if isinstance(exc, SyntaxError):
        return ""
    codes = [(code, line) for code, line in _lines(exc.__traceback__) if not is_ours(code)]
    files = [(code.co_filename, line) for code, line in codes if not code.co_filename.startswith("<")]
    libraries = _libraries()
    of_app = [(file, line) for file, line in files if not file.startswith(libraries)]
    return next((f"{os.path.basename(file)}:{line}" for file, line in reversed(of_app or files)), "")


def _lines(trace: TracebackType | None) -> Iterator[tuple[CodeType, int]]:
    while trace is not None:
        yield trace.tb_frame.f_code, trace.tb_lineno
        trace = trace.tb_next


def _libraries() -> tuple[str, ...]:
    """The folders of what an app is made with: Python's own modules and the installed packages."""
    from sysconfig import get_paths  # late, as above

    return tuple(os.path.join(path, "") for name, path in get_paths().items() if name.endswith("lib"))
