"""Calls operations of an OpenAPI document by HTTP."""
