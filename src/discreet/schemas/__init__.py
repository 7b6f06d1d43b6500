"""Contracts as documents: JSON Schema, OpenRPC, and what breaks between two versions."""
