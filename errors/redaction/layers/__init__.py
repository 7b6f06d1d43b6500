"""The layers of the scrubber, in the order of section 11: known secrets, names, shapes, entropy, paths."""
