"""Stores of tasks: the interface, and implementations in memory and in SQLite. Each is imported when it is chosen."""
