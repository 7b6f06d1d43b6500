"""Connects one client: reads and writes messages, and sends it requests."""
