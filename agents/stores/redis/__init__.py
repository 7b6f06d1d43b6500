"""Tasks in a Redis server, or a cluster of them. Only daemons that are told to use one import this."""
