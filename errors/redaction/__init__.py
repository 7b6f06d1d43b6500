"""Decides what leaves the daemon, by two functions.

`error_object` maps a failure to what a caller is told: its canonical code, its message and minimal `error.data`. These are
declared facts and never the text of an exception, so there is nothing to remove from them.

`scrub` removes secrets, paths and the names of accounts from a diagnosis, which is for the log.

The other functions tell the scrubber behind `scrub` what it can't know (`register`), or give it another kind of input
(`scrub_event`).
"""

from ..wire import error_object as error_object
from .limits import ScrubLimits as ScrubLimits
from .scrubber import Scrubber as Scrubber
from .scrubber import find_secrets as find_secrets
from .scrubber import finds_secret as finds_secret
from .scrubber import load_environment as load_environment
from .scrubber import redactions as redactions
from .scrubber import register as register
from .scrubber import register_caller_secret as register_caller_secret
from .scrubber import scrub as scrub
from .scrubber import scrub_details as scrub_details
from .scrubber import scrub_event as scrub_event
from .scrubber import scrub_exception as scrub_exception
from .scrubber import scrub_fields as scrub_fields
from .scrubber import scrub_known as scrub_known
from .scrubber import scrub_name as scrub_name
from .scrubber import scrub_secrets as scrub_secrets
from .scrubber import unregister as unregister
