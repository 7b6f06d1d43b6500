"""Byte transports: over descriptors, and in memory."""
