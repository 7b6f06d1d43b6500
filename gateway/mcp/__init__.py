"""MCP's Streamable HTTP: sessions for the revisions up to 2025-11-25, and requests that stand alone since 2026-07-28."""
