"""The conversation with an MCP server: by a process or by HTTP, in either generation."""
