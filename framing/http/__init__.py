"""What clients of HTTP read alike, those of `client` and those of the daemon."""
