"""Generates typed client modules from the schemas of operations. Imported by `discreet generate` alone."""

from .python_client import python_client
from .schemas import SchemaError
from .typescript_client import typescript_client

__all__ = ["SchemaError", "python_client", "typescript_client"]
