"""Mounts operations of another daemon here: finds and calls them."""
