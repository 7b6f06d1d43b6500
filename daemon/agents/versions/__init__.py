"""How each version of A2A writes the same requests and results."""
