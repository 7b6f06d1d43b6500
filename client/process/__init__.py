"""The server's process and its stderr."""
