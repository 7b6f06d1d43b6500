"""The A2A methods: from a call to the task that it is about."""
