"""EC2 instance types as a plan needs them: cores, memory, price. Pure; families and prices are price_table.py's.

Memory per vCPU is the family's letter: c 2, m 4, r 8 GiB; c5n has 2.625. Source: https://aws.amazon.com/ec2/instance-types/
"""

from dataclasses import dataclass

from common.price_table import US_EAST_1, Architecture, PriceTable
from common.pricing import architecture_of, instance_hour, xlarges

GIB = 2**30
VCPUS_OF_XLARGE = 4
_GIB_PER_VCPU = {"c": 2.0, "m": 4.0, "r": 8.0}
_GIB_PER_VCPU_OF_FAMILY = {"c5n": 2.625}


@dataclass(frozen=True)
class Instance:
    """usd_hour: on demand."""

    name: str
    vcpus: int
    memory_bytes: int
    usd_hour: float
    architecture: Architecture


def instance(name: str, prices: PriceTable = US_EAST_1) -> Instance:
    """Raises SpecError for a type without a price, with the nearest that has one."""
    hour = instance_hour(name, prices)
    family, _, size = name.partition(".")
    vcpus = round(VCPUS_OF_XLARGE * xlarges(size))
    each = _GIB_PER_VCPU_OF_FAMILY.get(family, _GIB_PER_VCPU[family[0]])
    return Instance(name, vcpus, round(vcpus * each * GIB), hour, architecture_of(name))
