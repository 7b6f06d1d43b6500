"""Operations of another daemon, mounted here: how they are found, how they are called. Of a daemon without imports nothing loads."""
