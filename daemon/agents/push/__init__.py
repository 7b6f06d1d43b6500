"""Push notifications: what is sent, where to, and how often it is tried."""
