"""Services that come with the daemon, each hosted like any other."""
