"""Operations of another daemon, mounted here: how they are found, and how they are called."""
