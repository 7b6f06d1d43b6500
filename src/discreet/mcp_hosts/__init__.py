"""Writes and reads the settings files of MCP hosts: the programs that start MCP servers or call them."""
