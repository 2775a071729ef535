"""How use becomes a bill: the rules by which AWS charges, over the prices of price_table.py.

    Lambda   sum over invocations of configured GB x billed seconds, and a price per request; an invocation is billed
             its duration and, on a cold start, its init, together rounded up to 1 ms
    EC2      each server on its own: started seconds, never less than 60, at the hourly price / 3600
    spot     the same seconds, at the largest share of the price on demand that the table has seen: an assumption on the
             safe side of most hours, for what a zone asks at that hour no table knows. Never more than on demand
    traffic  per GB into and out of an availability zone; nothing within one
    S3       each request, and the bytes that are kept there, by the second; nothing for bytes to servers of the region
    endpoint each interface endpoint in each zone, by the hour, used or not
    disks    GB by the second, if a price is known

Without free tier, savings plans and taxes. What is used and has no known price stands in the bill with none.
"""

import difflib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from common.errors import SpecError
from common.price_table import TABLES, US_EAST_1, Architecture, PriceTable

MIN_SERVER_SECONDS = 60
MB_PER_GB = 1024
BYTES_PER_GB = 1_000_000_000
HOUR_SECONDS = 3600
MONTH_SECONDS = 730 * HOUR_SECONDS


def billed_ms(duration_ms: float, *, init_ms: float = 0.0) -> int:
    """At least 1."""
    return max(1, math.ceil(duration_ms + init_ms))


class LambdaUsage:
    """Sums over invocations, exact: never an average of memory or time, and the memory configured, not the used."""

    def __init__(self) -> None:
        self.requests = 0
        self._mb_ms = 0

    def invocation(self, *, memory_mb: int, billed_ms: int) -> None:
        """A failed one counts as any other; a throttled one did not run and does not."""
        self.requests += 1
        self._mb_ms += memory_mb * billed_ms

    def merge(self, other: "LambdaUsage") -> None:
        self.requests += other.requests
        self._mb_ms += other._mb_ms

    @property
    def gb_seconds(self) -> float:
        return self._mb_ms / (MB_PER_GB * 1000)


@dataclass(frozen=True)
class Usage:
    """What a run took.

    server_seconds   role -> running time of each of its servers
    across_zones_bytes   from one availability zone to another; servers of a job stand in one zone
    endpoint_seconds     of all interface endpoints, each in each zone
    """

    server_seconds: Mapping[str, Sequence[float]]
    lambda_gb_seconds: float = 0.0
    lambda_requests: int = 0
    across_zones_bytes: int = 0
    s3_reads: int = 0
    s3_writes: int = 0
    stored_gb_seconds: float = 0.0
    disk_gb_seconds: float = 0.0
    endpoint_seconds: float = 0.0


@dataclass(frozen=True)
class CostItem:
    """usd: None if no price is known: used, and not counted."""

    what: str
    quantity: float
    unit: str
    usd: float | None


@dataclass(frozen=True)
class Cost:
    """What was not used is left out."""

    items: tuple[CostItem, ...]

    @property
    def usd(self) -> float:
        return math.fsum(item.usd or 0.0 for item in self.items)


SPOT = " spot"
"""Ends an item of servers that are spot instances."""


def price(
    usage: Usage,
    *,
    instance_type: str,
    region: str = US_EAST_1.region,
    architecture: Architecture | None = None,
    spot: bool = False,
) -> Cost:
    """Every server is an `instance_type`; functions run on `architecture`, by default the servers' own.

    Raises SpecError for an instance type or region without a price.
    """
    table = price_table(region)
    hour = instance_hour(instance_type, table) * (spot_share(table)[1] if spot else 1.0)
    kind = instance_type + (SPOT if spot else "")
    functions = architecture or architecture_of(instance_type)
    items = [
        *(_servers(role, seconds, kind, hour) for role, seconds in usage.server_seconds.items()),
        _item(f"Lambda {functions}", usage.lambda_gb_seconds, "GB-s", table.lambda_gb_second[functions]),
        _item("Lambda requests", usage.lambda_requests, "requests", table.lambda_request),
        _item("across zones", usage.across_zones_bytes / BYTES_PER_GB, "GB", 2 * table.across_zones_gb),
        _item("S3 reads", usage.s3_reads, "requests", table.s3_read),
        _item("S3 writes", usage.s3_writes, "requests", table.s3_write),
        _item("S3 storage", usage.stored_gb_seconds / MONTH_SECONDS, "GB-months", table.s3_gb_month),
        _item("private endpoints", usage.endpoint_seconds / HOUR_SECONDS, "hours", table.interface_endpoint_hour),
        _item("disks", usage.disk_gb_seconds / MONTH_SECONDS, "GB-months", table.disk_gb_month),
    ]
    return Cost(tuple(item for item in items if item.quantity))


def on_demand(bill: Sequence[CostItem], table: PriceTable = US_EAST_1) -> float:
    """The most that it can have been, USD: as if no server had been a spot instance."""
    share = spot_share(table)[1]
    return math.fsum((item.usd or 0.0) / (share if item.what.endswith(SPOT) else 1.0) for item in bill)


def spot_share(table: PriceTable = US_EAST_1) -> tuple[float, float]:
    """The lowest and the highest share of the price on demand that spot instances were seen to cost."""
    seen = [(low, high, instance_hour(name, table)) for name, (low, high) in table.spot_hour.items()]
    return min(low / hour for low, _, hour in seen), max(high / hour for _, high, hour in seen)


def added(*bills: Sequence[CostItem]) -> tuple[CostItem, ...]:
    """One bill: what stands in several of them, once."""
    sums: dict[str, CostItem] = {}
    for item in (item for bill in bills for item in bill):
        before = sums.get(item.what, CostItem(item.what, 0.0, item.unit, 0.0))
        usd = None if item.usd is None or before.usd is None else before.usd + item.usd
        sums[item.what] = CostItem(item.what, before.quantity + item.quantity, item.unit, usd)
    return tuple(sums.values())


def prices_of(region: str | None) -> PriceTable:
    """The region's own, or us-east-1's where these are not known: `price_note` then says so."""
    return TABLES.get(region or "", US_EAST_1)


def price_note(region: str | None) -> str:
    """What whoever reads a cost of another region has to know; empty where the prices are the region's own."""
    if region is None or region in TABLES:
        return ""
    table = US_EAST_1
    return (
        f"costs and budgets are told in prices of {table.region} ({table.date}), for those of {region} are not known: "
        "what AWS bills may be more"
    )


def price_table(region: str) -> PriceTable:
    if region not in TABLES:
        raise SpecError(
            f"no prices are known for region {region!r}",
            why="prices differ from region to region",
            fix=f"use one of: {', '.join(sorted(TABLES))}",
        )
    return TABLES[region]


def instance_hour(instance_type: str, table: PriceTable = US_EAST_1) -> float:
    """USD per hour, on demand, Linux. SpecError names the nearest type that has a price."""
    family, _, size = instance_type.partition(".")
    if family in table.families and size in table.families[family].sizes:
        return table.families[family].xlarge_hour * xlarges(size)
    known = [f"{name}.{each}" for name, of in table.families.items() for each in of.sizes]
    near = difflib.get_close_matches(instance_type, known, n=1, cutoff=0.0)
    raise SpecError(
        f"no price is known for instance type {instance_type!r} in {table.region}",
        why="without a price the cost of a run and its budget cannot be told",
        fix=f"did you mean {near[0]}? Families with a price: {', '.join(table.families)}",
    )


def architecture_of(instance_type: str) -> Architecture:
    """Graviton families bear a g after their generation: c7g, c6gn, r8gd."""
    return "arm64" if re.match(r"[a-z]+\d+g", instance_type) else "x86_64"


def xlarges(size: str) -> float:
    """`2xlarge` is 2."""
    return 0.5 if size == "large" else float(size.removesuffix("xlarge") or 1)


def _servers(role: str, seconds: Sequence[float], kind: str, hour: float) -> CostItem:
    billed = sum(max(MIN_SERVER_SECONDS, math.ceil(each)) for each in seconds)
    hours = billed / HOUR_SECONDS
    return CostItem(f"{role}: {len(seconds)} x {kind}", hours, "hours", hours * hour)


def _item(what: str, quantity: float, unit: str, unit_price: float | None) -> CostItem:
    return CostItem(what, quantity, unit, None if unit_price is None else quantity * unit_price)
