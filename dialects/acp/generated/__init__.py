# Written by tools/protocols from the schema of ACP 1. Do not edit.
"""ACP as structs."""
