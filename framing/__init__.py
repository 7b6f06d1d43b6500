"""Bytes to frames and back, and the care of stdin, stdout and stderr."""
