"""Operations: typed functions with declared contracts, and the registry that finds them by name."""
