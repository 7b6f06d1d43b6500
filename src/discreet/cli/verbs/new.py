"""`discreet new`: makes a folder with a project that runs and passes its tests."""

import argparse
import keyword
import os
import sys
from importlib.util import find_spec

from ...daemon.lifecycle import EXIT_OK
from ...daemon.settings import UsageError
from ..output import write_stdout
from ..project_templates import TEMPLATES, flags, project


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What kind of project, and its name."""
    parser.add_argument("kind", metavar="KIND", choices=tuple(TEMPLATES), help=f"one of {', '.join(TEMPLATES)}")
    parser.add_argument("name", metavar="NAME", help="the name of the folder, of the module and of the service")


def _is_taken(name: str) -> bool:
    """Whether a module of that name is there, which the new one would hide."""
    return name in sys.stdlib_module_names or find_spec(name) is not None


def run(args: argparse.Namespace) -> int:
    """Make the folder. Raises `UsageError` for a name that is no module's, and for a folder that is there already."""
    name = str(args.name)
    if not name.isidentifier() or keyword.iskeyword(name) or not name.isascii():
        raise UsageError(f"{name}: a name must be that of a module: letters, digits and _, such as my_server")
    if os.path.lexists(name):
        raise UsageError(f"{name} is there already")
    if _is_taken(name):
        raise UsageError(f"{name}: Python has a module of this name, which the new one would hide; take another")
    try:
        os.mkdir(name)
        for file, text in project(args.kind, name).items():
            with open(os.path.join(name, file), "x", encoding="utf-8") as made:
                made.write(text)
    except FileExistsError as exc:
        raise UsageError(f"{name} is there already") from exc
    except OSError as exc:
        raise UsageError(f"{name} can't be made: {os.strerror(exc.errno or 0)}") from exc
    write_stdout(
        f"{name}/ is made. Next:\n  cd {name}\n  pip install -e '.[test]'\n  python -m pytest\n"
        f"  discreet doctor ./{name}.py:app{flags(args.kind)}"
    )
    return EXIT_OK
