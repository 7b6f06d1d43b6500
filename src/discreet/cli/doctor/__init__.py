"""The checks of `discreet doctor`, and its trial run of the daemon."""
