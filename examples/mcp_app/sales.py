"""Sales by region, with a page that hosts of MCP show for the tool: a table, and a chart of the region that is clicked."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec

from discreet import OperationError, Service

SOLD = {
    2025: {"North": [12, 15, 9, 22], "South": [31, 28, 35, 40], "West": [7, 11, 19, 16]},
    2026: {"North": [14, 18, 21, 0], "South": [36, 33, 39, 0], "West": [20, 24, 17, 0]},
}
PAGE = Path(__file__).with_name("sales.html")

Year = Annotated[int, msgspec.Meta(description="A year of four digits.", ge=1900, le=2999)]


class Region(msgspec.Struct):
    name: str
    sold: int


class Report(msgspec.Struct):
    year: int
    regions: list[Region]


class Quarters(msgspec.Struct):
    """What was sold in each quarter, the first one first."""

    region: str
    sold: list[int]


class NoSuchYear(OperationError, code="NO_SUCH_YEAR", http_status=404):
    """There are no figures of this year."""

    years: list[int]


class NoSuchRegion(OperationError, code="NO_SUCH_REGION", http_status=404):
    """There is no such region."""

    regions: list[str]


sales = Service("sales", description="Tells what was sold.", version="1.0.0", dialect="mcp")


@sales.resource("ui://sales/report", title="Sales", options={"ui": {"prefersBorder": True}})
def page() -> str:
    """The table and the chart."""
    return PAGE.read_text(encoding="utf-8")


@sales.query(errors=[NoSuchYear], options={"ui": {"resourceUri": "ui://sales/report"}})
async def report(year: Year) -> Report:
    """Tell what each region sold in a year."""
    regions = regions_of(year)
    return Report(year, [Region(name, sum(sold)) for name, sold in regions.items()])


@sales.query(
    errors=[NoSuchYear, NoSuchRegion], options={"ui": {"resourceUri": "ui://sales/report", "visibility": ["app"]}}
)
async def quarters(year: Year, region: str) -> Quarters:
    """Tell what a region sold in each quarter. For the page: models don't see this tool."""
    regions = regions_of(year)
    if region not in regions:
        raise NoSuchRegion(regions=sorted(regions))
    return Quarters(region, regions[region])


def regions_of(year: int) -> dict[str, list[int]]:
    if year not in SOLD:
        raise NoSuchYear(years=sorted(SOLD))
    return SOLD[year]
