"""Compares contracts: tells whether a new one breaks the callers of an old one."""
