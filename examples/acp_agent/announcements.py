"""A server of MCP that the deployer tells: it writes announcements into a file."""

from pathlib import Path

from discreet import Service

announcements = Service("", description="Announces.", version="1.0.0")


@announcements.mutation
def announce(text: str) -> None:
    """Announce something."""
    with Path("announced.txt").open("a") as file:
        file.write(text + "\n")
