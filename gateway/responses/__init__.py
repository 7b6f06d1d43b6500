"""What may be done with a whole response, whichever endpoint gives it: a tag for caches, and compression."""
