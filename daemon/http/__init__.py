"""The HTTP gateway: A2A for clients on the network. Everything here is loaded only where HTTP is served."""
