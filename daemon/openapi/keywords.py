"""The keywords of array items as tools of OpenAPI read them, which often take no boolean for a schema; and back again."""

from __future__ import annotations

from ..schemas.json_schema import JsonSchema


def to_openapi(schema: JsonSchema) -> JsonSchema:
    """A tuple without further items gets `maxItems` in place of `"items": false`, and `"items": true` becomes `{}`."""
    match schema.get("items"):
        case True:
            return {**schema, "items": {}}
        case False:
            rest = {keyword: value for keyword, value in schema.items() if keyword != "items"}
            return rest | {"maxItems": len(schema.get("prefixItems", ()))}
        case _:
            return schema


def from_openapi(schema: JsonSchema) -> JsonSchema:
    """The schema from which `to_openapi` made this one."""
    most = schema.get("maxItems")
    if "items" not in schema and most is not None and most == len(schema.get("prefixItems", ())):
        return {**{keyword: value for keyword, value in schema.items() if keyword != "maxItems"}, "items": False}
    return {**schema, "items": True} if schema.get("items") == {} else schema
