"""The program `discreet`, also as `python -P -m discreet`. Without `-P` or `-I`, Python itself has imported modules from the
working directory before this line is read."""

import os
import sys

from .module_path import remove_working_directory


def main() -> int:
    """Run the command line of this process; returns the exit status."""
    remove_working_directory()
    try:
        from .garbage import begin_start

        begin_start()
        from .cli.main import main as run

        return run(sys.argv[1:])
    except (MemoryError, ImportError, SystemError) as exc:
        # As every start that fails: one line, and the status for wrong usage. CPython raises the last of them without memory.
        os.write(2, f"discreet: {_lack(exc)}\n".encode())
        return 2


def _lack(exc: Exception) -> str:
    name = exc.name if isinstance(exc, ModuleNotFoundError) else None
    if name is None or name.partition(".")[0] in (__package__, "", *sys.stdlib_module_names):
        return "the system does not provide what the start needs: room for the program's modules"
    return f"{name} is not installed; pip install discreet installs what it needs"


if __name__ == "__main__":
    sys.exit(main())
