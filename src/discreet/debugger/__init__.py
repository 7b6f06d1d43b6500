"""Implements `breakpoint()` in a daemon, whose stdin and stdout belong to the protocol."""
