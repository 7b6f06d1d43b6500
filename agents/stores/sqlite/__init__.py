"""Stores tasks in a SQLite file that several daemons may share."""
