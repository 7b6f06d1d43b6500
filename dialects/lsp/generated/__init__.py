# Written by tools/protocols from the meta model of LSP 3.18.0. Do not edit.
"""LSP as structs and tables."""
