"""Bytes in and out: descriptors, and a pair in memory."""
