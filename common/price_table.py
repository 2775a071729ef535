"""AWS prices, dated, with where each was read. USD; list prices on demand, first tier, and what spot was seen to cost.

Sources
  Lambda   AWS Price List API of 2025-10-28 and of 2026-09-19, which agree (first tier: up to 6, arm64 7.5, billion GB-s
           a month); INIT is billed since August 2025
  EC2      AWS Price List API of 2026-02-09, Linux, shared tenancy, as listed in aws/karpenter-provider-aws,
           pkg/providers/pricing/zz_generated.pricing_aws.go
  spot     SkyPilot's catalog, version 8, commit 00148f2, of 2025 or 2026 without a date: the lowest and the highest
           price among the region's zones. Only these types were listed; for all others their share is assumed
  traffic  https://aws.amazon.com/ec2/pricing/on-demand/, "Data transfer within the same AWS Region", read 2026
  endpoint https://aws.amazon.com/privatelink/pricing/, interface endpoints, first tier
  S3       Bodner et al. 2024, Table 2: S3 Standard, requests, and bytes of the first tier
  disks    not known: a bill has them without a price

A region without a table of its own is told in us-east-1's prices, and everything that tells a cost says so.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

Architecture = Literal["x86_64", "arm64"]


@dataclass(frozen=True)
class Family:
    """EC2 instances that differ in size only: each costs its multiple of an xlarge, to the last digit."""

    xlarge_hour: float
    sizes: tuple[str, ...]


@dataclass(frozen=True)
class PriceTable:
    region: str
    date: str
    """Of the oldest listing of servers and functions."""
    lambda_gb_second: Mapping[Architecture, float]
    lambda_request: float
    families: Mapping[str, Family]
    spot_hour: Mapping[str, tuple[float, float]]
    """Instance type -> lowest and highest price per hour that was seen. Spot prices move, by zone and by the hour."""
    across_zones_gb: float
    """Per GB that leaves an availability zone for another one of the region, and again where it enters."""
    interface_endpoint_hour: float
    """Per endpoint and availability zone, used or not. Gateway endpoints and egress-only gateways cost nothing."""
    s3_read: float
    """GET and HEAD; DELETE costs nothing."""
    s3_write: float
    """PUT, POST and LIST."""
    s3_gb_month: float
    disk_gb_month: float | None
    """gp3. None: not known, and not counted."""


_SMALL = ("large", "xlarge", "2xlarge", "4xlarge")
_TO_18 = (*_SMALL, "9xlarge", "18xlarge")
_TO_16 = (*_SMALL, "8xlarge", "12xlarge", "16xlarge")
_TO_24 = (*_TO_16, "24xlarge")
_TO_32 = (*_TO_24, "32xlarge")
_TO_48 = (*_TO_24, "48xlarge")
_AMD = (*_TO_32, "48xlarge")
_TO_96 = (*_AMD, "96xlarge")

US_EAST_1 = PriceTable(
    region="us-east-1",
    date="2025-10-28",
    lambda_gb_second=MappingProxyType({"x86_64": 0.0000166667, "arm64": 0.0000133334}),
    lambda_request=0.20 / 1_000_000,
    families=MappingProxyType(
        {
            "c5": Family(0.17, (*_TO_18, "12xlarge", "24xlarge")),
            "c5n": Family(0.216, _TO_18),
            "c6a": Family(0.153, _AMD),
            "c6g": Family(0.136, _TO_16),
            "c6gn": Family(0.1728, _TO_16),
            "c6i": Family(0.17, _TO_32),
            "c6in": Family(0.2268, _TO_32),
            "c7a": Family(0.20528, _AMD),
            "c7g": Family(0.145, _TO_16),
            "c7gn": Family(0.2496, _TO_16),
            "c7i": Family(0.1785, _TO_48),
            "c8g": Family(0.15952, _TO_48),
            "c8gn": Family(0.237, _TO_48),
            "c8i": Family(0.18742, _TO_96),
            "m5": Family(0.192, _TO_24),
            "m6a": Family(0.1728, _AMD),
            "m6g": Family(0.154, _TO_16),
            "m6i": Family(0.192, _TO_32),
            "m7a": Family(0.23184, _AMD),
            "m7g": Family(0.1632, _TO_16),
            "m7i": Family(0.2016, _TO_48),
            "m8g": Family(0.17952, _TO_48),
            "m8i": Family(0.21168, _TO_96),
            "r5": Family(0.252, _TO_24),
            "r6a": Family(0.2268, _AMD),
            "r6g": Family(0.2016, _TO_16),
            "r6i": Family(0.252, _TO_32),
            "r7a": Family(0.3043, _AMD),
            "r7g": Family(0.2142, _TO_16),
            "r7i": Family(0.2646, _TO_48),
            "r8g": Family(0.23564, _TO_48),
            "r8i": Family(0.27784, _TO_96),
        }
    ),
    spot_hour=MappingProxyType({"c5n.4xlarge": (0.377, 0.520), "c5n.9xlarge": (0.676, 0.949)}),
    across_zones_gb=0.01,
    interface_endpoint_hour=0.01,
    s3_read=0.40 / 1_000_000,
    s3_write=5.00 / 1_000_000,
    s3_gb_month=0.023,
    disk_gb_month=None,
)

TABLES: Mapping[str, PriceTable] = MappingProxyType({US_EAST_1.region: US_EAST_1})
