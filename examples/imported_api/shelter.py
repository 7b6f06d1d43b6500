"""A service that uses the operations of an HTTP API as if they were its own."""

from pathlib import Path

from discreet import Context, OperationError, Service, from_openapi

pets = from_openapi(
    Path(__file__).with_name("pets.json"),
    namespace="pets",
    credentials="pets",
    allow_private=True,
)


class NotHere(OperationError, code="NOT_HERE", http_status=404):
    """The shelter has no such pet."""

    name: str


shelter = Service("shelter", uses=["pets/get_pet", "pets/list_pets"])


@shelter.query(errors=[NotHere])
async def describe(ctx: Context, name: str) -> str:
    """Say in a sentence what a pet is."""
    try:
        pet = await ctx.call("pets/get_pet", {"name": name})
    except OperationError as exc:
        if exc.definition.code == "HTTP_404":
            raise NotHere(name=name) from None
        raise
    return f"{pet['name']} is a {pet['kind']}"


@shelter.query
async def count(ctx: Context) -> dict[str, int]:
    """Count the pets of each kind."""
    kinds = [pet["kind"] for pet in await ctx.call("pets/list_pets")]
    return {kind: kinds.count(kind) for kind in sorted(set(kinds))}
