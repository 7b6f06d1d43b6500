"""Turns the schemas of OpenAPI documents into JSON Schema 2020-12."""
