# Written by tools/protocols from the schemas of MCP 2024-11-05 to 2025-11-25 and 2026-07-28. Do not edit.
"""MCP as structs and tables."""
