"""The texts that an editor has open, as it sees them. Knows no messages and no protocol."""
