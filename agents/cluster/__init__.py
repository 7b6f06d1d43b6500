"""The daemons on one store: what they leave to each other, follow of each other, and take over."""
