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
from common.price_table import US_EAST_1, PriceTable
from common.pricing import MB_PER_GB, MIN_SERVER_SECONDS
from local_cloud.payload import Computers
from local_cloud.plan.counts import Work

WITHIN = 2.0
"""An estimate may be wrong by this factor, either way: cores differ, and neighbours on them, too."""
FLOPS_PER_CORE = 50e9
"""Of float32 products of the shapes that tensor tasks have, one thread: AVX2 gives 60 to 70, older cores less."""
ROW_BYTES_PER_CORE = 2e9
"""That tensor tasks read and write, with the elementwise functions between."""
EDGE_BYTES_PER_CORE = 8e9
"""That Gathers read, rows of the table at random."""
FULL_VCPU_MB = 1769
"""Of memory, for which a function has one vCPU. Source: AWS Lambda Developer Guide."""
FUNCTION_BYTES_PER_SECOND = 75e6
"""In each direction, whatever the memory. Source: Bodner et al. 2024, section 4.2."""
HOP_SECONDS_PER_CORE = 0.5e-3
"""For each step of each interval, whatever it computes: events, messages, threads."""
LATENCY_SECONDS = 0.1
"""Of a task's way, both directions."""
SPOT_AT_LEAST = 0.1
"""Of the price on demand. Source: https://aws.amazon.com/ec2/spot/, "up to 90 % off"."""


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


@dataclass(frozen=True)
class Shares:
    """Core seconds of an epoch. f: the tensor share of both."""

    tensor: float
    graph: float

    @property
    def f(self) -> float:
        return self.tensor / (self.tensor + self.graph)


def shares(work: Work) -> Shares:
    tensor = work.flops / FLOPS_PER_CORE + work.row_bytes / ROW_BYTES_PER_CORE
    return Shares(tensor, work.edge_bytes / EDGE_BYTES_PER_CORE + work.hops * HOP_SECONDS_PER_CORE)


def _cores(work: Work, box: Instance, cluster: Cluster) -> int:
    """Of all graph servers, as far as there are intervals for them."""
    return min(box.vcpus * cluster.num_graph_servers, work.num_intervals)


def cpu_epoch(work: Work, box: Instance, cluster: Cluster) -> Range:
    each = shares(work)
    seconds = (each.tensor + each.graph) / _cores(work, box, cluster)
    return Range(seconds / WITHIN, seconds * WITHIN)


def lambda_epoch(work: Work, box: Instance, cluster: Cluster, functions: Functions) -> Range:
    each, links = shares(work), work.links(Computers("lambda", functions.leases))
    graph = each.graph / _cores(work, box, cluster)
    moved = (links["graph_lambda"] + links["parameter_lambda"]) / (functions.leases * FUNCTION_BYTES_PER_SECOND)
    tensor = max(each.tensor / functions.cores, moved)
    late = work.tasks_in_a_row * LATENCY_SECONDS
    return Range(max(graph, tensor) / WITHIN, (graph + tensor) * WITHIN + late)


def server_dollars(seconds: Range, box: Instance, cluster: Cluster, *, spot: bool = False) -> Range:
    """A server is billed for a minute at the least."""
    billed = Range(max(seconds.low, MIN_SERVER_SECONDS), max(seconds.high, MIN_SERVER_SECONDS))
    whole = billed * (cluster.num_servers * box.usd_hour / 3600)
    return Range(whole.low * SPOT_AT_LEAST, whole.high) if spot else whole


def lambda_dollars(seconds: Range, box: Instance, functions: Functions, prices: PriceTable = US_EAST_1) -> Range:
    """All leases, from the first epoch to the last."""
    gb = functions.leases * functions.memory_mb / MB_PER_GB
    requests = functions.leases / functions.lease_seconds
    each = gb * prices.lambda_gb_second[box.architecture] + requests * prices.lambda_request
    return seconds * each + Range(1, 1) * (functions.leases * prices.lambda_request)


def price_ratio(box: Instance, prices: PriceTable = US_EAST_1) -> float:
    """r: a core second on Lambda over one on the server."""
    function = FULL_VCPU_MB / MB_PER_GB * prices.lambda_gb_second[box.architecture]
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
