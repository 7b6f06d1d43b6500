# Written by tools/protocols from the meta model of LSP 3.18.0. Do not edit.
"""Every name, for type checkers and editors. Importing it loads everything."""

from .actions import *  # noqa: F403
from .base import *  # noqa: F403
from .completion import *  # noqa: F403
from .decorations import *  # noqa: F403
from .diagnostics import *  # noqa: F403
from .documents import *  # noqa: F403
from .edits import *  # noqa: F403
from .formatting import *  # noqa: F403
from .hover import *  # noqa: F403
from .navigation import *  # noqa: F403
from .notebooks import *  # noqa: F403
from .options import *  # noqa: F403
from .symbols import *  # noqa: F403
from .workspace import *  # noqa: F403
