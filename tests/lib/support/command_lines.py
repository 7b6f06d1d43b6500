"""Settings as a command line, an environment and a directory give them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from discreet.daemon.settings import Settings, resolve_settings
from discreet.flags import FlagParser, add_setting_flags, file_from_flags, from_flags


def load_settings(argv: Sequence[str], environ: Mapping[str, str], directory: str) -> Settings:
    """The settings of `discreet serve ARGV` with this environment in this directory. Raises `UsageError`."""
    parser = FlagParser("discreet serve", "[APP ...] [FLAG ...]")
    add_setting_flags(parser)
    args = parser.read(argv)
    return resolve_settings(from_flags(args), environ, directory, file_from_flags(args)).settings
