"""Runs one command line: finds the verb, parses its arguments, calls it, and returns the exit status.

Status 0 is success, 1 is failure, 2 is wrong usage. A failure is one line on stderr, never a traceback.
"""

from collections.abc import Sequence
from typing import Final

from ..daemon.lifecycle import EXIT_FAILED, EXIT_OK, EXIT_USAGE
from ..daemon.plugins import is_known, names
from ..daemon.settings import UsageError
from ..daemon.settings.reference import EXPECTED
from ..errors.nearest import nearest_hint
from ..version import __version__
from .commands import DEFAULT_VERB, VERBS, HelpShown, general_help, load_verb
from .output import discard_stdout, write_stderr, write_stdout

_MEANT: Final = {
    **dict.fromkeys(("run", "start", "host", "daemon"), "serve"),
    **dict.fromkeys(("init", "create"), "new"),
    **dict.fromkeys(("invoke", "exec", "send"), "call"),
    **dict.fromkeys(("check", "test"), "doctor"),
}
"""The verbs of other programs that no spelling leads to."""


def main(argv: Sequence[str]) -> int:
    """Run one command line, given without the program's name. Returns the exit status."""
    try:
        return _run(argv)
    except HelpShown:
        return EXIT_OK
    except UsageError as exc:
        write_stderr(str(exc))
        return EXIT_USAGE
    except KeyboardInterrupt:  # such as while stdin is read; what waits for a server handles its signals itself
        from .exit_status import EXIT_INTERRUPTED  # late: no other end needs it

        return EXIT_INTERRUPTED
    except BrokenPipeError:
        discard_stdout()
        return EXIT_FAILED
    except OSError as exc:  # usually a full disk behind stdout
        write_stderr(exc.strerror or "the output can't be written")
        discard_stdout()
        return EXIT_FAILED


def _run(argv: Sequence[str]) -> int:
    match argv:
        case ["-h" | "--help", *_]:
            write_stdout(general_help())
            return EXIT_OK
        case ["--version", *_]:
            write_stdout(f"discreet {__version__}")
            return EXIT_OK
        case ["call", "--complete", line]:  # in no help text: the scripts of `completion` run it
            from .call.completer import print_completions  # late: no other run needs it

            return print_completions(line)
        case ["help", *rest] if not rest or rest[0] in VERBS:
            raise UsageError(f"help: write discreet {''.join(f'{verb} ' for verb in rest[:1])}--help")
        case [name, *rest] if name in VERBS:
            pass
        case [name, *rest] if not name.startswith("-") and ":" not in name and is_known("verb", name):
            pass
        case [word, *_] if not word.startswith("-") and ":" not in word:
            from ..daemon.settings.meant_app import meant_by  # late: only errors need it

            if word.endswith(".py"):
                meant = meant_by(word) or f": ./{word.removeprefix('./')}:name"
                raise UsageError(f"{word}: an app is a name in a file{meant}")
            near = f"; nearest: {_MEANT[word]}" if word in _MEANT else nearest_hint(word, names("verb"))
            meant = meant_by(word) or near
            raise UsageError(f"{word}: neither a command nor an app ({EXPECTED}){meant}")
        case _:
            name, rest = DEFAULT_VERB, list(argv)
    parser, module = load_verb(name)
    return module.run(parser.read(rest))
