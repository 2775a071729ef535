"""From counts to seconds and dollars: an estimate, with its range. Pure.

The servers alone       epoch = tensor work and graph work, over all cores
with Lambda             epoch = the slower of the servers' graph work and the functions' tensor work, if the latency is
                        hidden (async, or a graph with locality); at worst one after the other, and the latency on top

Tensor work has share f of all work. With r = price of a unit of tensor work on Lambda over that on the server's own
cores, Lambda raises value, 1 / (seconds x dollars), only when f > (r - 2) / (r - 1): (1 - f) (1 - f + f r) < 1.
"""

import math
from dataclasses import dataclass

from common.instances import Instance
from common.price_table import US_EAST_1, Architecture, PriceTable
from common.pricing import MB_PER_GB, MIN_SERVER_SECONDS, spot_share
from common.saga.epoch_work import FULL_VCPU_MB, WITHIN, Shares, cores, shares
from local_cloud.payload import Computers
from local_cloud.plan.counts import Work

FUNCTION_BYTES_PER_SECOND = 75e6
"""In each direction, whatever the memory. Source: Bodner et al. 2024, section 4.2."""
LATENCY_SECONDS = 0.1
"""Of a task's way, both directions."""


@dataclass(frozen=True)
class Range:
    low: float
    high: float

    @property
    def middle(self) -> float:
        return math.sqrt(self.low * self.high)

    def __mul__(self, factor: float) -> "Range":
        return Range(self.low * factor, self.high * factor)

    def __add__(self, other: "Range") -> "Range":
        return Range(self.low + other.low, self.high + other.high)


@dataclass(frozen=True)
class Cluster:
    num_graph_servers: int
    num_parameter_servers: int

    @property
    def num_servers(self) -> int:
        return self.num_graph_servers + self.num_parameter_servers


@dataclass(frozen=True)
class Functions:
    """leases: as many run at once; lease_seconds: after which each is invoked anew."""

    leases: int
    memory_mb: int
    lease_seconds: float

    @property
    def cores(self) -> float:
        return self.leases * self.memory_mb / FULL_VCPU_MB


def cpu_epoch(work: Work, box: Instance, cluster: Cluster) -> Range:
    each = shares(work)
    seconds = (each.tensor + each.graph) / cores(work, box.vcpus, cluster.num_graph_servers)
    return Range(seconds / WITHIN, seconds * WITHIN)


def lambda_epoch(work: Work, box: Instance, cluster: Cluster, functions: Functions) -> Range:
    each, links = shares(work), work.links(Computers("lambda", functions.leases))
    graph = each.graph / cores(work, box.vcpus, cluster.num_graph_servers)
    moved = (links["graph_lambda"] + links["parameter_lambda"]) / (functions.leases * FUNCTION_BYTES_PER_SECOND)
    tensor = max(each.tensor / functions.cores, moved)
    late = work.tasks_in_a_row * LATENCY_SECONDS
    return Range(max(graph, tensor) / WITHIN, (graph + tensor) * WITHIN + late)


def server_dollars(
    seconds: Range, box: Instance, cluster: Cluster, *, spot: bool = False, prices: PriceTable = US_EAST_1
) -> Range:
    """A server is billed for a minute at the least; spot between the shares of the price on demand that were seen."""
    billed = Range(max(seconds.low, MIN_SERVER_SECONDS), max(seconds.high, MIN_SERVER_SECONDS))
    whole = billed * (cluster.num_servers * box.usd_hour / 3600)
    low, high = spot_share(prices) if spot else (1.0, 1.0)
    return Range(whole.low * low, whole.high * high)


def endpoint_dollars(seconds: Range, endpoints: int, prices: PriceTable = US_EAST_1) -> Range:
    """While the job runs; interface endpoints are billed at all other times, too."""
    return seconds * (endpoints * prices.interface_endpoint_hour / 3600)


def lambda_dollars(
    seconds: Range, architecture: Architecture, functions: Functions, prices: PriceTable = US_EAST_1
) -> Range:
    """All leases, from the first epoch to the last."""
    gb = functions.leases * functions.memory_mb / MB_PER_GB
    requests = functions.leases / functions.lease_seconds
    each = gb * prices.lambda_gb_second[architecture] + requests * prices.lambda_request
    return seconds * each + Range(1, 1) * (functions.leases * prices.lambda_request)


def price_ratio(box: Instance, architecture: Architecture, prices: PriceTable = US_EAST_1) -> float:
    """r: a core second on Lambda, of functions of that architecture, over one on the server."""
    function = FULL_VCPU_MB / MB_PER_GB * prices.lambda_gb_second[architecture]
    return function / (box.usd_hour / 3600 / box.vcpus)


def least_share(r: float) -> float:
    """The tensor share above which Lambda raises value; 0 where it always does."""
    return max(0.0, (r - 2) / (r - 1)) if r > 1 else 0.0


def in_words(each: Shares, r: float, *, pays: bool) -> str:
    """Whether Lambda raises value, and why one may want it if it does not."""
    needed, f = least_share(r), each.f
    about = f"tensor work is {f:.0%} of all work, and a core second on Lambda costs {r:.1f} times one on the server"
    if pays:
        return f"Lambda pays: {about}; it pays above {needed:.0%}."
    if f > needed:
        return f"Lambda does not pay: {about}, which would do, but the way to the functions takes longer than the work."
    return (
        f"Lambda does not pay: {about}; it would above {needed:.0%}. One may still want it: epochs are shorter, and "
        "functions are there in a second, for as long as they are needed."
    )
