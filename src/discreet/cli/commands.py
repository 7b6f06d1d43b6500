"""Finds the verb of a command line and runs it: the table of verbs, and the parsers and help texts made from it.

Imports a verb only when asked to.
"""

import argparse
from collections.abc import Sequence
from typing import Final, Protocol

from msgspec import Struct

from ..daemon import plugins
from ..daemon.lifecycle import EXIT_OK
from ..daemon.settings import UsageError
from ..daemon.settings.option import EXPECTED
from ..errors.nearest import nearest_hint
from ..flags import FlagParser
from ..version import __version__
from .output import write_stdout


class Verb(Struct, frozen=True):
    """What the help says about a verb. The table of plug-ins says which module implements it."""

    usage: str
    summary: str
    examples: tuple[str, ...]


class VerbModule(Protocol):
    """The interface of a verb's module. `run` returns the exit status and may raise `UsageError`."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...
    def run(self, args: argparse.Namespace) -> int: ...


VERBS: Final[dict[str, Verb]] = {
    "serve": Verb(
        "[APP ...] [FLAG ...]",
        "Serve services, over stdin and stdout, to whatever started this.",
        (
            "discreet serve ./app.py:files",
            "discreet --root ~/project --allow-write",
            "discreet ./app.py:files --framing newline",
        ),
    ),
    "call": Verb(
        "METHOD [NAME=VALUE ... | JSON] [FLAG ...]",
        "Call one method of a daemon and print the result.",
        (
            "discreet call fs/read path=README.md",
            "discreet call listMethods --app ./app.py:files",
            """discreet call fs/read '{"path": "README.md", "limit": 80}' --root ~/project""",
            "discreet call fs/write path=note.txt content=@- --allow-write < draft.txt",
            "discreet call fs/watch path=. --stream | jq .path",
            "discreet call tools/list --dialect mcp --server 'my-mcp-server --flag'",
        ),
    ),
    "demo": Verb(
        "",
        "Start daemons, call them, and show what goes over the wire.",
        ("discreet demo",),
    ),
    "new": Verb(
        "KIND NAME",
        "Make a folder with a project that runs and passes its tests.",
        (
            "discreet new service shop",
            "discreet new lsp my_server",
            "discreet new mcp my_tools",
            "discreet new acp my_agent",
        ),
    ),
    "doctor": Verb(
        "[APP ...] [FLAG ...] [--json]",
        "Check the environment, try out a daemon, and say what clients see.",
        (
            "discreet doctor ./app.py:files --root ~/project",
            "discreet doctor ./shop.py:shop --dialect mcp",
            "discreet doctor --json",
        ),
    ),
    "attach": Verb(
        "[PID]",
        "Debug a daemon at breakpoint(), if it was started with --debug.",
        ("discreet attach", "discreet attach 4711"),
    ),
    "schema": Verb(
        "[APP ...] [--check FILE] [-o FILE] [FLAG ...]",
        "Print the operations' schemas, or report what breaks callers.",
        (
            "discreet schema ./app.py:files > schema.json",
            "discreet schema ./app.py:files --check schema.json",
            "discreet schema ./app.py:files --check schema.json -o schema.json",
        ),
    ),
    "card": Verb(
        "[APP ...] [--a2a-version 1.0|0.3] [--extended] [FLAG ...]",
        "Print the agent card (A2A) of what would be served.",
        (
            "discreet card ./app.py:agent",
            "discreet card ./app.py:files --a2a-version 0.3",
            "discreet card ./app.py:agent --extended",
        ),
    ),
    "generate": Verb(
        "python|typescript [APP ... | --server COMMAND] [-o FILE]",
        "Write a typed client of an app, or of a running server.",
        (
            "discreet generate python ./app.py:files -o files_client.py",
            "discreet generate typescript ./app.py:files -o files_client.ts",
            "discreet generate python --server 'discreet serve --allow-write' -o fs_client.py",
        ),
    ),
    "import": Verb(
        "check FILE|URL [--namespace NAME] [--json] [--outside]",
        "Say what an OpenAPI document would offer as operations.",
        (
            "discreet import check openapi.yaml",
            "discreet import check https://petstore3.swagger.io/api/v3/openapi.json",
            "discreet import check openapi.json --namespace pets --json",
        ),
    ),
    "record": Verb(
        "[-o FILE] [FLAG ...] -- COMMAND ...",
        "Run a server, and write a scrubbed recording of the session.",
        (
            "discreet record -- discreet serve ./app.py:files",
            "discreet record -o session.jsonl --framing newline -- my-server",
            "discreet record --tail -o session.jsonl -- my-server",
        ),
    ),
    "replay": Verb(
        "FILE [FLAG ...] -- COMMAND ...",
        "Send a server a recorded session; report answers that differ.",
        (
            "discreet replay session.jsonl -- discreet serve ./app.py:files",
            "discreet replay session.jsonl --ignore 'result.**.modified' -- discreet serve",
        ),
    ),
    "show": Verb(
        "FILE [--full | --html]",
        "Print a recorded session for people, as lines or as a page.",
        ("discreet show session.jsonl", "discreet show session.jsonl --html > session.html"),
    ),
    "completion": Verb(
        "bash|zsh|fish",
        "Print the completion script of a shell.",
        (
            'eval "$(discreet completion bash)"',
            "discreet completion zsh > ~/.zfunc/_discreet",
            "discreet completion fish > ~/.config/fish/completions/discreet.fish",
        ),
    ),
}
"""All verbs, in the order in which the help lists them."""

DEFAULT_VERB: Final = "serve"
"""What a command line without a verb means."""


_MEANT: Final = {
    **dict.fromkeys(("run", "start", "host", "daemon"), "serve"),
    **dict.fromkeys(("init", "create"), "new"),
    **dict.fromkeys(("invoke", "exec", "send"), "call"),
    **dict.fromkeys(("check", "test"), "doctor"),
}
"""The verbs of other programs that no spelling leads to."""


def run_command(argv: Sequence[str]) -> int:
    """Run what a command line names. Returns the exit status; raises `UsageError`."""
    try:
        return _run(argv)
    except HelpShown:
        return EXIT_OK


def _run(argv: Sequence[str]) -> int:
    match argv:
        case ["-h" | "--help", *_]:
            write_stdout(general_help())
            return EXIT_OK
        case ["--version", *_]:
            write_stdout(f"discreet {__version__}")
            return EXIT_OK
        case ["help", *rest] if not rest or rest[0] in VERBS:
            raise UsageError(f"help: write discreet {''.join(f'{verb} ' for verb in rest[:1])}--help")
        case [name, *rest] if name in VERBS:
            pass
        case [name, *rest] if not name.startswith("-") and ":" not in name and plugins.is_known("verb", name):
            pass
        case [word, *_] if not word.startswith("-") and ":" not in word:
            from ..daemon.settings.meant_app import meant_by  # late: only errors need it

            if word.endswith(".py"):
                meant = meant_by(word) or f": ./{word.removeprefix('./')}:name"
                raise UsageError(f"{word}: an app is a name in a file{meant}")
            near = f"; nearest: {_MEANT[word]}" if word in _MEANT else nearest_hint(word, plugins.names("verb"))
            meant = meant_by(word) or near or f"; commands: {', '.join((*VERBS, *plugins.added('verb')))}"
            raise UsageError(f"{word}: neither a command nor an app ({EXPECTED}){meant}")
        case _:
            name, rest = DEFAULT_VERB, list(argv)
    parser, module = load_verb(name)
    return module.run(parser.read(rest))


def load_verb(name: str) -> tuple[FlagParser, VerbModule]:
    """Import a verb's module. Returns the parser with all the verb's arguments, and the module. Raises `UsageError` where an
    installed package adds the verb and can't be loaded.
    """
    try:
        module: VerbModule = plugins.load("verb", name)
    except plugins.PluginError as exc:
        raise UsageError(str(exc)) from exc
    verb = VERBS.get(name) or Verb(getattr(module, "USAGE", "[ARGUMENT ...]"), getattr(module, "SUMMARY", ""), ())
    parser = FlagParser(f"discreet {name}", verb.usage, description=verb.summary)
    parser.add_argument("-h", "--help", action=_HelpAction, help="show this text and exit")
    module.add_arguments(parser)
    return parser, module


class HelpShown(Exception):
    """Ends the parsing of a command line that asks for help, whatever else is on it."""


class _HelpAction(argparse.Action):
    """Prints the help of one verb. argparse's own action would hide that the reader of stdout is gone."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str) -> None:
        super().__init__(option_strings, dest, nargs=0, default=argparse.SUPPRESS, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from .exit_status import sections_of  # late: only help needs it

        name = parser.prog.rpartition(" ")[2]
        write_stdout(
            "\n\n".join(
                (parser.format_help().rstrip(), *sections_of(name, VERBS[name].examples if name in VERBS else ()))
            )
        )
        raise HelpShown


def general_help() -> str:
    """Return the text of `discreet --help`. It fits on a screen of 24 lines and 80 columns."""
    width = max(map(len, VERBS))
    lines = [f"  {name:{width}}  {verb.summary}" for name, verb in VERBS.items()]
    if added := plugins.added("verb"):
        lines.append(f"  {'':{width}}  Of installed packages: {', '.join(added)}.")
    return _GENERAL_HELP.format(verbs="\n".join(lines))


_GENERAL_HELP: Final = """\
usage: discreet [serve] [APP ...] [FLAG ...]
       discreet COMMAND [ARGUMENT ...]

A daemon that speaks JSON-RPC 2.0 on stdin and stdout. Without a command it
serves; without an app it serves the files of the working directory, read only.

{verbs}

An app is a name in a module (shop:service) or in a file (./shop.py:service).
`discreet COMMAND --help` tells of its flags, examples, settings and statuses."""
