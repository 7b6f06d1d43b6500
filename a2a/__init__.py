"""A2A as data: its messages and tasks, the states, the card, and the JSON of its versions. Runs nothing."""
