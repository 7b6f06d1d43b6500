"""The file service."""
