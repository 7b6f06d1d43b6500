"""`discreet mine`: prints its words."""

from __future__ import annotations

import argparse

USAGE = "WORD ..."
SUMMARY = "Print the words."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("words", nargs="+", metavar="WORD", help="what to print")
    parser.add_argument("--status", type=int, default=0, help="the exit status")


def run(args: argparse.Namespace) -> int:
    print(*args.words)
    return int(args.status)
