"""The version of this package. Imports nothing, so that every part of it may ask."""

__version__ = "0.1.0"
