"""Protocols of others on the daemon's connections: LSP, MCP and ACP."""
