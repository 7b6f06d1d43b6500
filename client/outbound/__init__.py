"""Requests that the daemon sends to other servers: where they may go, and the connections for them."""
