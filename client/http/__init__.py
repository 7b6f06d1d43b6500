"""Calls and streams by HTTP, for servers of A2A. Loaded only for a URL: h11 is an extra."""
