"""Runs one command line and returns the exit status.

Status 0 is success, 1 is failure, 2 is wrong usage. A failure is one line on stderr, never a traceback.
"""

from collections.abc import Sequence

from ..daemon.lifecycle import EXIT_FAILED, EXIT_USAGE
from ..daemon.settings import UsageError
from ..garbage import end_start


def main(argv: Sequence[str]) -> int:
    """Run one command line, given without the program's name. Returns the exit status."""
    try:
        apps = argv[1:] if argv[:1] == ["serve"] else argv
        if all(":" in word and not word.startswith("-") for word in apps):
            from .verbs.serve import (
                serve_apps,  # late, as all below: the first reply need not wait for what others need
            )

            return serve_apps(apps)
        end_start()
        if argv[0] == "--complete":  # in no help text: the scripts of `completion` run it
            from .completer import print_completions

            return print_completions(argv[1] if len(argv) > 1 else "")
        from .commands import run_command

        return run_command(argv)
    except UsageError as exc:
        from .output import write_stderr

        write_stderr(str(exc))
        return EXIT_USAGE
    except KeyboardInterrupt as exc:  # an `Interrupted`, or while stdin is read
        from .exit_status import EXIT_INTERRUPTED

        return getattr(exc, "status", EXIT_INTERRUPTED)
    except BrokenPipeError:
        _discard_stdout()
        return EXIT_FAILED
    except OSError as exc:  # usually a full disk behind stdout
        from .output import write_stderr

        write_stderr(exc.strerror or "the output can't be written")
        _discard_stdout()
        return EXIT_FAILED


def _discard_stdout() -> None:
    from .output import discard_stdout

    discard_stdout()
