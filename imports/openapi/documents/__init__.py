"""Gets, parses and looks through the documents of one import."""
