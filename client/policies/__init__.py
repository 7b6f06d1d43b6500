"""When a call is made again, and when a server is started again."""
