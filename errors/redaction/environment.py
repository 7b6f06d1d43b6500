"""Finds what must not be logged in an environment: secrets, account names, home directories. Changes nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from .layers.sensitivity import Sensitivity, name_sensitivity

_ACCOUNT_VARIABLES = ("USER", "LOGNAME", "USERNAME", "SUDO_USER")
_HOME_VARIABLES = ("HOME", "USERPROFILE")
_DIRECTORIES = frozenset({"PWD", "OLDPWD"})  # POSIX: working directories, not passwords
_MIN_ACCOUNT_LENGTH = 3
# Account names that are ordinary words of logs: replacing them everywhere would make the log unreadable.
_SHARED_ACCOUNTS = frozenset(
    "root admin administrator user users daemon nobody ubuntu debian fedora centos alpine runner app application node"
    " python www www-data web nginx postgres mysql redis jenkins gitlab github build builder ci deploy docker test"
    " tester guest default system service vagrant pi dev developer path redacted cut home data worker server client"
    " agent main master local localhost public".split()
)
_URL_PASSWORD = re.compile(r"://[^\s:/@]{0,128}:([^\s@/]{1,256})@")


class SensitiveValues(NamedTuple):
    """The sensitive values of an environment."""

    secrets: tuple[str, ...]
    users: tuple[str, ...]
    homes: tuple[str, ...]


def find_sensitive_values(environ: Mapping[str, str]) -> SensitiveValues:
    """Values of variables with a sensitive name, passwords in the URLs of any variable, accounts and home directories."""
    secrets = [
        value
        for name, value in environ.items()
        if name_sensitivity(name) is Sensitivity.CERTAIN and name not in _DIRECTORIES
    ]
    secrets += [found[1] for value in environ.values() if "://" in value and (found := _URL_PASSWORD.search(value))]
    homes = tuple(home for name in _HOME_VARIABLES if (home := environ.get(name, "")))
    accounts = {environ.get(name, "") for name in _ACCOUNT_VARIABLES}
    accounts |= {re.split(r"[\\/]", home.rstrip("\\/"))[-1] for home in homes}
    users = sorted(
        name for name in accounts if len(name) >= _MIN_ACCOUNT_LENGTH and name.lower() not in _SHARED_ACCOUNTS
    )
    return SensitiveValues(tuple(secrets), tuple(users), homes)
