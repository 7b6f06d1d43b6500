"""Reads OpenAPI documents as operations."""
