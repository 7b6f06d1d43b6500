"""Language servers: what LSP adds to operations."""
