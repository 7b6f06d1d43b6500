"""Sends requests of the daemon to other servers: decides where they may go, and opens connections."""
