"""A2A over HTTP+JSON, of 1.0 and of 0.3: paths, queries and bodies become calls, and outcomes become responses."""
