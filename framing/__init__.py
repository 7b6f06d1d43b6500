"""Turns bytes into frames and back, and guards stdin, stdout and stderr."""
