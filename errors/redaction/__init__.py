"""Keeps secrets, paths and account names out of logs and out of the details of declared errors."""

from .limits import ScrubLimits
from .scrubber import (
    Scrubber,
    find_secrets,
    finds_secret,
    load_environment,
    redactions,
    register,
    register_caller_secret,
    scrub,
    scrub_details,
    scrub_event,
    scrub_exception,
    scrub_fields,
    scrub_known,
    scrub_name,
    scrub_secrets,
    unregister,
)

__all__ = [
    "ScrubLimits",
    "Scrubber",
    "find_secrets",
    "finds_secret",
    "load_environment",
    "redactions",
    "register",
    "register_caller_secret",
    "scrub",
    "scrub_details",
    "scrub_event",
    "scrub_exception",
    "scrub_fields",
    "scrub_known",
    "scrub_name",
    "scrub_secrets",
    "unregister",
]
