"""Whether a new contract breaks the callers of an old one: operations by their snapshots, and their schemas."""
