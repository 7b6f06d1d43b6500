"""The daemon: it reads requests, runs operations and answers each request once."""
