"""HTTP in front of the daemon: A2A, operations and MCP, the page, health and metrics."""
