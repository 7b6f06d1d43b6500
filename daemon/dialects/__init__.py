"""What a client may speak: one module or folder for each dialect, loaded when a client speaks it."""
