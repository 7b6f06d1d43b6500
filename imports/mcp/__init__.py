"""The operations of servers that speak the Model Context Protocol."""
