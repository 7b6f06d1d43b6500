"""Daemons on one store under random faults, clients that notice everything, and a checker. Tests and `bench/chaos` run it."""
