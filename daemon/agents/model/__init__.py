"""The tasks and messages of A2A, and the rules that hold for them."""
