"""What a run would have cost on AWS: the meter's figures, at the price table's prices."""

from dataclasses import dataclass

from common.job_spec import JobSpec
from common.price_table import US_EAST_1, Architecture
from common.pricing import BYTES_PER_GB, Cost, Usage, price
from common.s3_requests import S3_READS, S3_WRITES
from local_cloud.run_result import Totals


@dataclass(frozen=True)
class Site:
    """What is billed beside servers and functions, in the deployment that a run stands in; nothing on this machine.

    functions          their architecture; None: the servers' own
    disk_gb            of each server
    endpoints          interface endpoints, each counted in each of its zones
    stored_bytes       that the run reads from its bucket, or keeps there
    teardown_seconds   for which servers are there after the run's end
    last_writes        to S3, at the most, that nobody has counted before the end
    """

    region: str = US_EAST_1.region
    functions: Architecture | None = None
    disk_gb: int = 0
    endpoints: int = 0
    stored_bytes: int = 0
    teardown_seconds: float = 0.0
    last_writes: int = 0


HERE = Site()


def run_cost(spec: JobSpec, totals: Totals, seconds: float, site: Site = HERE) -> Cost:
    """`seconds`: how long the servers would have run."""
    cluster = spec.cluster
    servers = {
        "graph server": [seconds] * cluster.num_graph_servers,
        "parameter server": [seconds] * cluster.num_parameter_servers,
    }
    return cost_of(servers, totals, site, instance_type=cluster.instance_type, spot=cluster.spot)


def cost_of(
    servers: dict[str, list[float]], totals: Totals, site: Site, *, instance_type: str, spot: bool = False
) -> Cost:
    """`servers`: role -> seconds of each. Disks are there as long as their servers, all else as long as the longest."""
    each = [seconds for role in servers.values() for seconds in role]
    longest = max(each, default=0.0)
    usage = Usage(
        servers,
        lambda_gb_seconds=totals.lambda_gb_seconds,
        lambda_requests=totals.lambda_requests,
        s3_reads=totals.counts.get(S3_READS, 0),
        s3_writes=totals.counts.get(S3_WRITES, 0),
        stored_gb_seconds=site.stored_bytes / BYTES_PER_GB * longest,
        disk_gb_seconds=site.disk_gb * sum(each),
        endpoint_seconds=site.endpoints * longest,
    )
    return price(usage, instance_type=instance_type, region=site.region, architecture=site.functions, spot=spot)
