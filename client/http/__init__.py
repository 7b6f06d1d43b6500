"""Calls and streams by HTTP, for servers of A2A. Loaded only for a URL: httpx is an extra."""
