"""Operations of other programs as services: those of OpenAPI documents, of MCP servers, and of other daemons."""
