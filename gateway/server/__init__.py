"""The HTTP server around the gateway: its sockets, its connections and their limits."""
