"""The program `discreet`, also as `python -m discreet`."""

import os
import sys


def main() -> int:
    """Run the command line of this process; returns the exit status."""
    try:
        from .cli.main import main as run

        return run(sys.argv[1:])
    except (MemoryError, ImportError):  # as every start that fails: one line, and the status for wrong usage
        os.write(2, b"discreet: the system does not provide what the start needs: room for the program's modules\n")
        return 2


if __name__ == "__main__":
    sys.exit(main())
