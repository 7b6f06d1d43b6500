"""The layers of the scrubber, in order: known secrets, names, token formats, entropy, paths."""
