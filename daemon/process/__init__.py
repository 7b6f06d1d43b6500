"""The operating system's process: signals, parent, children, and the way out."""
