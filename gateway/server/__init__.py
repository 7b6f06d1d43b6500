"""The HTTP server around the gateway: sockets, uvicorn, and the limits that uvicorn lacks."""
