"""Decides when and where requests run, and makes one answer of each."""
