"""What tests of several folders share. pytest puts `tests/lib` on the path (see `pythonpath` in pyproject.toml)."""
