"""Converters for argparse that several verbs share. Each raises `argparse.ArgumentTypeError` for a text that it refuses."""

import argparse


def positive_seconds(text: str) -> float:
    """A finite number above 0."""
    seconds = _positive(text)
    if seconds is None:
        raise argparse.ArgumentTypeError(f"{text}: must be a number above 0")
    return seconds


def timeout(text: str) -> float | None:
    """A finite number of seconds above 0, or None for the word `none`: no limit."""
    if text == "none":
        return None
    seconds = _positive(text)
    if seconds is None:
        raise argparse.ArgumentTypeError(f"{text}: must be a number above 0, or none")
    return seconds


def _positive(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if 0 < number < float("inf") else None


def count(text: str) -> int:
    """A whole number, 0 or more."""
    if not (text.isascii() and text.isdigit() and len(text) <= 6):
        raise argparse.ArgumentTypeError(f"{text}: must be a whole number, 0 or more")
    return int(text)
