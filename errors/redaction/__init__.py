"""Keeps secrets, paths and account names out of logs and out of declared details."""

from .scrubber import (
    Scrubber,
    ScrubLimits,
    finds_secret,
    load_environment,
    register,
    scrub,
    scrub_details,
    scrub_exception,
    scrub_fields,
    scrub_secrets,
    unregister,
)

__all__ = [
    "ScrubLimits",
    "Scrubber",
    "finds_secret",
    "load_environment",
    "register",
    "scrub",
    "scrub_details",
    "scrub_exception",
    "scrub_fields",
    "scrub_secrets",
    "unregister",
]
