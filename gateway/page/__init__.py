"""The page for people: what the daemon offers, in a browser, and the last requests."""
