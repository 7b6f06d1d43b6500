"""Calls operations of OpenAPI documents by HTTP."""
