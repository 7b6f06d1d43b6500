"""The program `discreet`, also as `python -P -m discreet`. Without `-P` or `-I`, Python itself has imported modules from the
working directory before this line is read."""

import sys

from .module_path import remove_working_directory


def main() -> int:
    """Run the command line of this process; returns the exit status."""
    remove_working_directory()
    try:
        from .cli.main import main as run
    except ModuleNotFoundError as exc:
        if (exc.name or "").partition(".")[0] == __package__:
            raise
        sys.stderr.write(f"discreet: {exc.name} is not installed; pip install discreet installs what it needs\n")
        return 2
    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
