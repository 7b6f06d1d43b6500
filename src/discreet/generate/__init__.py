"""Turns the documents of operations into client modules for other programs. Loaded by `discreet generate` alone."""
