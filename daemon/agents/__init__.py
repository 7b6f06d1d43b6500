"""Agents: the A2A service of the daemon. Loaded when one of its methods is first called."""
