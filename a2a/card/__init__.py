"""The agent card, in the JSON of A2A 1.0 and 0.3."""
