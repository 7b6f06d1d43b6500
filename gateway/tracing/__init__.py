"""Spans of OpenTelemetry: what the daemon does, and on whose behalf."""
