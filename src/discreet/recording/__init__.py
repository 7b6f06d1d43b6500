"""Recordings of a conversation: written, read and replayed."""
