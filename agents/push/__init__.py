"""Push notifications: what is sent, where, and how often it is retried."""
