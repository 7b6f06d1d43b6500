"""The shared parts of the project's web pages: assembly, colours, and the display of JSON."""
