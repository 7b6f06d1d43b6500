"""Where tasks are kept. Each store loads when it is chosen."""
