"""Agents: the A2A task service on the daemon. Loaded when one of its methods is first called."""
