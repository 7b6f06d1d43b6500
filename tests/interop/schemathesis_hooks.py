"""What schemathesis 4.32 needs to check results that hold tuples: it rewrites `prefixItems` in the schemas of responses for an
older draft than that by which it then validates them. For requests it does not."""

from functools import partial

from schemathesis.specs.openapi.adapter import responses

responses.to_json_schema = partial(responses.to_json_schema, convert_prefix_items=False)
