"""Reads what an environment gives away: secrets under telling names, the account, its home. Changes nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from .layers.words import Verdict, judge

_ACCOUNT_VARIABLES = ("USER", "LOGNAME", "USERNAME", "SUDO_USER")
_HOME_VARIABLES = ("HOME", "USERPROFILE")
_DIRECTORIES = frozenset({"PWD", "OLDPWD"})  # POSIX: working directories, not passwords
_SHORTEST_ACCOUNT = 3
# Names that are words of any log: hiding them would say more than they do.
_SHARED_ACCOUNTS = frozenset(
    "root admin administrator user users daemon nobody ubuntu debian fedora centos alpine runner app application node"
    " python www www-data web nginx postgres mysql redis jenkins gitlab github build builder ci deploy docker test"
    " tester guest default system service vagrant pi dev developer path redacted cut home data worker server client"
    " agent main master local localhost public".split()
)
_URL_PASSWORD = re.compile(r"://[^\s:/@]{0,128}:([^\s@/]{1,256})@")


class Environment(NamedTuple):
    """What an environment gives away."""

    secrets: tuple[str, ...]
    users: tuple[str, ...]
    homes: tuple[str, ...]


def read(environ: Mapping[str, str]) -> Environment:
    """The values of telling variables, the passwords of URLs in any, and the names of the account and its home."""
    secrets = [value for name, value in environ.items() if judge(name) is Verdict.SECRET and name not in _DIRECTORIES]
    secrets += [found[1] for value in environ.values() if "://" in value and (found := _URL_PASSWORD.search(value))]
    homes = tuple(home for name in _HOME_VARIABLES if (home := environ.get(name, "")))
    accounts = {environ.get(name, "") for name in _ACCOUNT_VARIABLES}
    accounts |= {re.split(r"[\\/]", home.rstrip("\\/"))[-1] for home in homes}
    users = sorted(name for name in accounts if len(name) >= _SHORTEST_ACCOUNT and name.lower() not in _SHARED_ACCOUNTS)
    return Environment(tuple(secrets), tuple(users), homes)
