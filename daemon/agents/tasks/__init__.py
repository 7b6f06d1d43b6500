"""Tasks that run: executions, events, and their way into the store."""
