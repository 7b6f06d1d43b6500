"""Other servers as operations: OpenAPI documents, MCP servers and other daemons."""
