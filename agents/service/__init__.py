"""The A2A methods: everything between a call and its task, and what puts the agent together."""
