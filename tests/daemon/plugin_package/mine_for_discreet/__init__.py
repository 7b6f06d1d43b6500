"""A package that brings a dialect, a task store and a verb."""
