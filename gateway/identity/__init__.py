"""Identity providers that are shipped and need libraries of an extra."""
