"""What the daemon counts of itself, as figures. Nothing here is loaded before somebody asks for them."""
