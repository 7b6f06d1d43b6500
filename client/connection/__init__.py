"""One connection to a server: what is sent, what comes back, and who waits for it."""
