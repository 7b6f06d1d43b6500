"""What runs when, where it runs, and how it becomes one answer."""
