"""Reads OpenAPI documents of other programs as operations. Calls nothing."""
