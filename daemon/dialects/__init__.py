"""The protocols of editors and agents: LSP, MCP and ACP, as data. What speaks them comes on top."""
