"""When a call is tried again, and when a server is started again."""
