"""The program `discreet`, also as `python -m discreet`."""

import sys


def main() -> int:
    """Run the command line of this process; returns the exit status."""
    from .cli.main import main as run

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
