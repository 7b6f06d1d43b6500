"""Operations as an OpenAPI 3.1 document, as they are served by HTTP: from declarations to data. Serves nothing."""
