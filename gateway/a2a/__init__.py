"""A2A over HTTP: JSON-RPC, HTTP+JSON and the agent card."""
