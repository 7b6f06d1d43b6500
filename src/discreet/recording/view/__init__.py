"""Renders sessions for people: a line per message, and a page for a browser."""
