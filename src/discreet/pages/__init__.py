"""What the project's web pages share: how one is put together, its colours, and how JSON reads on it."""
