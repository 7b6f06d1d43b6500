"""`discreet new`: makes a folder with a project that runs and passes its tests."""

import argparse
import keyword
import os
import sys
from collections.abc import Mapping
from importlib.resources import files
from importlib.util import find_spec
from typing import Final

from msgspec import Struct

from ...daemon.lifecycle import EXIT_OK
from ...daemon.settings import UsageError
from ..output import write_stdout


class Kind(Struct, frozen=True):
    """A kind of project: what it is, how to try it in a shell, which page of the docs says more, and the flags of `serve`.

    Its module and its test are in the folder `templates`. `NAME` stands for the name of the project.
    """

    about: str
    trial: str
    page: str
    flags: str = ""


KINDS: Final[Mapping[str, Kind]] = {
    "service": Kind(
        "A service that programs call over stdin and stdout.",
        "discreet call NAME/price item=lamp --app ./NAME.py:app",
        "tutorial.md",
    ),
    "lsp": Kind("A language server.", "discreet call version --dialect lsp --app ./NAME.py:app", "language-servers.md"),
    "mcp": Kind(
        "Tools for hosts of MCP.",
        """discreet call tools/call name=NAME_price arguments='{"item": "lamp"}' --dialect mcp --app ./NAME.py:app""",
        "mcp.md",
    ),
    "acp": Kind(
        "An agent for editors that speak ACP, and for callers of A2A.",
        "discreet call session/new cwd=/ mcpServers=[] --dialect acp --app ./NAME.py:app",
        "acp.md",
        flags=" --dialect acp",  # an agent does not say what its clients speak
    ),
}


def run(args: argparse.Namespace) -> int:
    """Make the folder. Raises `UsageError` for a name that is no module's, and for a folder that is there already."""
    name = str(args.name)
    if not name.isidentifier() or keyword.iskeyword(name) or not name.isascii():
        raise UsageError(f"{name}: a name must be that of a module: letters, digits and _, such as my_server")
    if os.path.lexists(name):
        raise UsageError(f"{name} is there already")
    if name in sys.stdlib_module_names or find_spec(name) is not None:
        raise UsageError(f"{name}: Python has a module of this name, which the new one would hide; take another")
    try:
        os.mkdir(name)
        for file, text in _project(args.kind, name).items():
            with open(os.path.join(name, file), "x", encoding="utf-8") as made:
                made.write(text)
    except OSError as exc:
        raise UsageError(f"{name} can't be made: {os.strerror(exc.errno or 0)}") from exc
    write_stdout(
        f"{name}/ is made. Next:\n  cd {name}\n  pip install -e '.[test]'\n  python -m pytest\n"
        f"  discreet doctor ./{name}.py:app{KINDS[args.kind].flags}"
    )
    return EXIT_OK


def _project(kind: str, name: str) -> dict[str, str]:
    """The texts of the files of a project, by their names."""
    chosen = KINDS[kind]
    words = {"ABOUT": chosen.about, "TRIAL": chosen.trial, "PAGE": chosen.page, "FLAGS": chosen.flags, "NAME": name}
    sources = {f"{name}.py": f"{kind}.py", f"test_{name}.py": f"test_{kind}.py"}
    texts: dict[str, str] = {}
    for file in ("pyproject.toml", "README.md", "conftest.py", *sources):
        source = files("discreet.cli") / "templates" / f"{sources.get(file, file)}.txt"
        texts[file] = source.read_text("utf-8")
        for word, value in words.items():
            texts[file] = texts[file].replace(word, value)
    return texts
