"""What the daemon and whatever starts and watches it have to say to each other."""
