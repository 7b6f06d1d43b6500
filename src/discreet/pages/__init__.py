"""The shared parts of the project's web pages: assembly, colours, the display of JSON and of messages."""
