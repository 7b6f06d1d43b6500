"""The built-in file service, confined to its root."""
