"""Recorded sessions: recording, scrubbing, reading and replaying them."""
