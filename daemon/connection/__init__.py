"""One client's wire: what is read from it, written to it and asked of it."""
