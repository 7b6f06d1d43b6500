"""Reads the requests and writes the results of A2A 1.0 and 0.3."""
