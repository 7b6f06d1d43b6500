"""Tasks in memory: their executions, their events, and how those reach the store and the watchers."""
