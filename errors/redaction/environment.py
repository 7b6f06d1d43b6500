"""Takes known secrets from environment variables whose names tell, and the account's names from the usual ones."""

from __future__ import annotations

import re
from collections.abc import Mapping

from .pipeline import Pipeline
from .words import Verdict, judge

_ACCOUNT_VARIABLES = ("USER", "LOGNAME", "USERNAME", "SUDO_USER")
_HOME_VARIABLES = ("HOME", "USERPROFILE")
_SHORTEST_ACCOUNT = 3
# Names that are words of any log: hiding them would say more than they do.
_SHARED_ACCOUNTS = frozenset(
    "root admin administrator user users daemon nobody ubuntu debian fedora centos alpine runner app application node"
    " python www www-data web nginx postgres mysql redis jenkins gitlab github build builder ci deploy docker test"
    " tester guest default system service vagrant pi dev developer path redacted cut home data worker server client"
    " agent main master local localhost public".split()
)
_URL_PASSWORD = re.compile(r"://[^\s:/@]{0,128}:([^\s@/]{1,256})@")


def load(environ: Mapping[str, str], pipeline: Pipeline) -> None:
    for name, value in environ.items():
        if judge(name) is Verdict.SECRET:
            pipeline.known.add(value)
        if "://" in value and (password := _URL_PASSWORD.search(value)):
            pipeline.known.add(password[1])
    accounts = {environ.get(name, "") for name in _ACCOUNT_VARIABLES}
    homes = tuple(home for name in _HOME_VARIABLES if (home := environ.get(name, "")))
    accounts |= {re.split(r"[\\/]", home.rstrip("\\/"))[-1] for home in homes}
    users = tuple(
        sorted(name for name in accounts if len(name) >= _SHORTEST_ACCOUNT and name.lower() not in _SHARED_ACCOUNTS)
    )
    pipeline.paths.learn(users=users, homes=homes)
