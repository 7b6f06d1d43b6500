"""One call from a shell: its params and credentials, the call itself, and completion of its command line."""
