"""Generates typed client modules from the schemas of operations. Imported by `discreet generate` alone."""

from .python.client import python_client
from .schema import SchemaError
from .typescript.client import typescript_client

__all__ = ["SchemaError", "python_client", "typescript_client"]
