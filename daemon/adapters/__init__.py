"""What the daemon offers, in the terms of other protocols."""
