"""Stores tasks in a PostgreSQL database that daemons of several machines may share."""
