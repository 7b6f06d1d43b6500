"""The agent card, in both versions of A2A."""
