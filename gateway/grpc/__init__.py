"""A2A over gRPC: its messages, its calls, and the server for them. Loaded with `--grpc` alone."""
