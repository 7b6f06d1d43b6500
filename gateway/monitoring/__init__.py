"""What supervisors and scrapers ask by HTTP: whether the daemon lives, whether it is ready, and its figures."""
